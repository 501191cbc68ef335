"""regard: sequence models of the attention lineage, to be trained, run and looked into."""

__version__ = "0.1.0"
