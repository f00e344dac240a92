"""The continuous mode: tasks that live as long as the job, in one barrier stage of Spark.

A *step* moves records from the sources to the sinks. It is one message to every task and one answer, not a Spark job,
so it takes milliseconds. A *checkpoint* happens at the end of a step, once in an interval. It owns offsets, state and
what transactional sinks commit. After a failure the job resumes from the last complete checkpoint.

Follow a step: `stepper` (driver) -> `engine` (driver) -> `task` -> `engine`. Follow a checkpoint: `stepper` -> `task`
-> `state_files` -> `stepper` -> `checkpoint_files`. `barrier_stage` is where Spark comes in, and `sockets` how the
processes talk.
"""
