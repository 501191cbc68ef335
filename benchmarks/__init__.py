"""Speed and memory against a peer or a limit, one command each: `python -m benchmarks.NAME`.

Machines are shared and noisy, so competitors take turns in one run and what counts is the ratio of
their medians. Nothing here gates a test.
"""

from regard.openmp import spin_briefly

spin_briefly()
