/// <reference types="node" preserve="true" />
/** Holdfast for Node: typed jobs on a queue in Redis whose jobs are held by locks. docs/node.md is the manual. */
export { Holdfast, type HoldfastOptions } from "./holdfast.js";
export { type Call } from "./call.js";
export { type Duration } from "./durations.js";
export {
  Cancel,
  Dead,
  HoldfastError,
  Interrupted,
  JobCancelled,
  JobDead,
  JobError,
  JobExpired,
  JobUnknown,
  NoAnswer,
  NotKept,
  Refused,
  Release,
  ResultTimeout,
  Retry,
  TooLarge,
  Verdict,
  type StopReason,
  type VerdictOptions,
} from "./errors.js";
export { currentJob, Job, type FakeFields, type Told } from "./job.js";
export { type Handler, type JobOptions, type JobType } from "./job_type.js";
export { type EnqueueOptions } from "./options.js";
export { JobRef, type Outcome, type ResultOptions, type State } from "./ref.js";
export { type IoRedisClient, type NodeRedisClient, type RedisClient } from "./redis/client.js";
export { type Middleware, type Next } from "./run.js";
export { type CronOptions, type ScheduleOptions } from "./schedules.js";
export { Misfit, type StandardSchema } from "./schema.js";
export { type FakeJob, type Mode, type Testing } from "./testing.js";
export { type RunOptions } from "./worker/run.js";
