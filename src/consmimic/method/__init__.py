"""The paper's mathematics as pure functions: torch only; no simulator, no rsl_rl, no files, no logging."""
