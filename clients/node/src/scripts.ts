/** The scripts that a client sends, as the build has written them: byte for byte those of all languages. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "./errors.js";
import { packageFolder } from "./package.js";

export type ScriptName = "register" | "enqueue" | "enqueue_with" | "job" | "await" | "cancel" | "requeue";

export interface Script {
  sha1: string;
  text: string;
}

const known = new Map<ScriptName, Script>();

export function script(name: ScriptName): Script {
  let found = known.get(name);
  if (found === undefined) {
    const text = read(name);
    found = { sha1: createHash("sha1").update(text).digest("hex"), text };
    known.set(name, found);
  }
  return found;
}

/** HOLDFAST_LUA, those of the package, or in a clone those of the build. */
function read(name: ScriptName): string {
  const folders = [join(packageFolder, "lua"), join(packageFolder, "..", "..", "build", "lua")];
  const folder = process.env.HOLDFAST_LUA ?? folders.find((each) => existsSync(each)) ?? folders[0]!;
  try {
    return readFileSync(join(folder, `${name}.lua`), "utf8");
  } catch (error) {
    throw new HoldfastError(
      `expected the script ${name}.lua in ${folder}, ${(error as NodeJS.ErrnoException).code}: ` +
        "install the package, build the clone, or name the folder of the scripts in HOLDFAST_LUA",
    );
  }
}
