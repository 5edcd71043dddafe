// The same module for `import`. There is one implementation, so an error of either form is an instance of both.
export * from "./index.js";
