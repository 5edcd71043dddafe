/** Where this package is, and its version. */
import { join } from "node:path";

export const VERSION = "0.2.0";

export const packageFolder = join(__dirname, "..");
