"""Recipe in, run folder out: the loop, objectives, schedules, the record, checkpoints."""
