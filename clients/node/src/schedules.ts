/** Schedules that are written in code. They travel to the worker in the frame `ready`. */
import { shown, toMs, toUnixMs, type Duration } from "./durations.js";
import { checkName } from "./ids.js";
import type { Arguments, JobType } from "./job_type.js";
import { count, listOf, type EnqueueOptions } from "./options.js";

/** How a schedule goes on (docs/schedules.md), and the options of its jobs. */
export interface ScheduleOptions<Input = unknown> extends Pick<
  EnqueueOptions,
  "queue" | "maxAttempts" | "timeout" | "keep" | "priority" | "startWithin" | "expired" | "onDead"
> {
  /** The type of the job, unless it is given. */
  id?: string;
  data?: Input;
  missed?: "once" | "all" | "skip";
  catchUp?: Duration;
  overlap?: "skip" | "allow" | "cancel";
  jitter?: Duration;
  start?: Date | string;
  end?: Date | string;
  limit?: number;
}

export interface CronOptions<Input = unknown> extends ScheduleOptions<Input> {
  /** The name of a time zone, such as "Europe/Berlin"; without it UTC. */
  tz?: string;
}

/** The options that may be left out where the job takes no data. */
export type ScheduleArguments<Input, Options> =
  [] extends Arguments<Input> ? [options?: Options] : [options: Options & { data: Input }];

export interface Schedule {
  id: string;
  frame: object;
}

const CHOICES = { missed: ["once", "all", "skip"], overlap: ["skip", "allow", "cancel"] };

export function scheduleOf(job: JobType<never, unknown>, when: object, options: ScheduleOptions): Schedule {
  const { id = job.type, data, missed, catchUp, overlap, jitter, start, end, limit, ...others } = options;
  const plan = job.planOf(others);
  if ("unique" in plan.fields || "headers" in plan.fields || plan.id !== undefined || plan.due !== 0)
    throw new TypeError("expected no unique keys, headers, ids and times for the jobs of a schedule");
  for (const [name, value] of Object.entries({ missed, overlap }))
    if (value !== undefined && !CHOICES[name as keyof typeof CHOICES].includes(value))
      throw new TypeError(`${name}: expected ${listOf(CHOICES[name as keyof typeof CHOICES])}, found ${shown(value)}`);
  const frame = {
    id: checkName(id, "id"),
    ...when,
    missed,
    catch_up: catchUp === undefined ? undefined : toMs(catchUp, "catchUp", 1),
    overlap,
    jitter: jitter === undefined ? undefined : toMs(jitter, "jitter", 1),
    start: start === undefined ? undefined : toUnixMs(start, "start"),
    end: end === undefined ? undefined : toUnixMs(end, "end"),
    limit: limit === undefined ? undefined : count(limit, "limit"),
    queue: plan.queue,
    job: { type: job.type, ...plan.fields, payload: data === undefined ? "" : data },
  };
  return { id, frame };
}
