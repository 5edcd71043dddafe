/** Standard Schema: the interface that zod, valibot, arktype and others share. Types only. */
import { shown } from "./durations.js";

export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type Validated<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

export interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The data do not fit the job. A caller gets it; of a payload the job is dead, as another attempt would not help. */
export class Misfit extends TypeError {}

export async function validated<Output>(schema: StandardSchema<unknown, Output>, value: unknown): Promise<Output> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.slice(0, 5).map(({ path = [], message }) => {
    const place = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return place === "" ? message : `${message} at '${place}'`;
  });
  throw new Misfit(`payload: ${issues.join("; ") || `expected other data, found ${shown(value)}`}`);
}
