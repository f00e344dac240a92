"""The continuous mode: tasks that live as long as the job, in one barrier stage of Spark.

A *step* moves records from the sources to the sinks. It is one message to every task and one answer, not a Spark job,
so it takes milliseconds. A *checkpoint* happens at the end of a step, once per interval. It contains offsets, state and
the committables of transactional sinks. After a failure, the job resumes from the last complete checkpoint.

Follow a step: `stepper` (driver) -> `engine` (driver) -> `task` -> `engine`. Follow a checkpoint: `stepper` -> `task`
-> `state_files` -> `stepper` -> `checkpoint_files`. `barrier_stage` connects to Spark, and `sockets` connects the
processes.
"""
