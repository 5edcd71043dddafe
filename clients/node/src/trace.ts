/** The trace context of OpenTelemetry, if the program has it: it travels in the headers of a job. */
import type { Call } from "./call.js";

/** Where @opentelemetry/api keeps what the program has registered. */
interface Registered {
  context?: { active(): unknown };
  propagation?: { inject(context: unknown, carrier: Record<string, string>, setter: typeof SETTER): void };
}

const KEY = Symbol.for("opentelemetry.js.api.1");
const SETTER = {
  set(carrier: Record<string, string>, name: string, value: string): void {
    carrier[name] = value;
  },
};

/** Adds `traceparent` and its companions if a span is active. */
export function inject(call: Call): void {
  const { context, propagation } = (globalThis as { [KEY]?: Registered })[KEY] ?? {};
  if (context === undefined || propagation === undefined || call.hasHeader("traceparent")) return;
  const found: Record<string, string> = {};
  propagation.inject(context.active(), found, SETTER);
  if (Object.keys(found).length > 0) Object.assign(call.headers, found);
}
