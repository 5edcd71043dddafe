// The types of the CommonJS form.
import holdfast = require("holdfast-queue");
import { Holdfast } from "holdfast-queue";

const hf: Holdfast = new holdfast.Holdfast();
const add = hf.job("add", (data: { a: number }) => data.a);
// @ts-expect-error: a is a number
void add.enqueue({ a: "1" });
