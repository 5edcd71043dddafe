/** A job that is not enqueued yet, and its record. */
import { checkName } from "./ids.js";
import { dueOf, fieldsOf, type EnqueueOptions } from "./options.js";
import { checkHeaders, hasOptions, recordLine, type Fields, type Headers } from "./record.js";
import { Misfit, validated, type StandardSchema } from "./schema.js";
import { shown } from "./durations.js";

const PAYLOAD_MAX = 63 * 2 ** 20;

/** The options of a call, read once. */
export class Plan {
  readonly fields: Fields;
  readonly queue: string;
  readonly id: string | undefined;
  readonly due: number;
  /** The script `enqueue` refuses the record: `enqueue_with` takes it. */
  readonly optional: boolean;
  readonly kept: boolean;
  /** A made id tells when; without headers of a call all its records begin the same. */
  readonly head: string;

  constructor(type: string, queue: string, options: EnqueueOptions, kept: boolean) {
    this.fields = fieldsOf(options);
    this.queue = options.queue === undefined ? queue : checkName(options.queue, "queue");
    this.id = options.id === undefined ? undefined : checkName(options.id, "id");
    this.due = dueOf(options);
    this.optional = hasOptions(this.fields);
    this.kept = kept || "keep" in this.fields;
    this.head = recordLine(type, null, this.fields);
  }
}

/** One job for `enqueueMany`. Hooks of `onEnqueue` may change `data` and `headers`. */
export class Call<Result = unknown> {
  /** For the compiler alone: what the handler returns. */
  declare readonly result?: Result;
  private own: Record<string, string> | undefined;
  private payload: string | Buffer = "";

  constructor(
    readonly type: string,
    readonly plan: Plan,
    public data: unknown,
    readonly schema?: StandardSchema,
  ) {}

  get queue(): string {
    return this.plan.queue;
  }

  get headers(): Record<string, string> {
    return (this.own ??= { ...(this.plan.fields.headers as Record<string, string> | undefined) });
  }

  hasHeader(name: string): boolean {
    return name in (this.own ?? (this.plan.fields.headers as Headers | undefined) ?? {});
  }

  /** Makes the payload, and checks what the handler will see of it. */
  prepare(): void | Promise<unknown> {
    const { data, schema } = this;
    this.payload = payloadOf(this.type, data);
    if (Buffer.byteLength(this.payload) > PAYLOAD_MAX)
      throw new RangeError(
        `${this.type}: expected a payload of at most ${PAYLOAD_MAX} bytes, found ${Buffer.byteLength(this.payload)}`,
      );
    if (this.own !== undefined) checkHeaders(this.own);
    if (schema === undefined || data instanceof Uint8Array) return;
    return validated(schema, this.payload === "" ? undefined : JSON.parse(this.payload as string)).catch(
      (error: unknown) => {
        if (error instanceof Misfit) error.message = `${this.type}: ${error.message}`;
        throw error;
      },
    );
  }

  record(created: number | null): string | Buffer {
    const { plan, own, payload } = this;
    const line =
      created === null && own === undefined
        ? plan.head
        : recordLine(this.type, created, own === undefined ? plan.fields : { ...plan.fields, headers: own });
    return typeof payload === "string" ? line + payload : Buffer.concat([Buffer.from(line), payload]);
  }
}

/** What the handlers of some calls return. */
export type ResultOf<Each extends Call> = Each extends Call<infer Result> ? Result : never;

function payloadOf(type: string, data: unknown): string | Buffer {
  if (data === undefined) return "";
  if (data instanceof Uint8Array) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  let text: string | undefined;
  try {
    text = JSON.stringify(data);
  } catch (error) {
    throw new Misfit(`${type}: expected data that JSON can express: ${(error as Error).message}`);
  }
  if (text === undefined)
    throw new Misfit(`${type}: expected data that JSON can express, found ${shown(String(data))}`);
  return text;
}
