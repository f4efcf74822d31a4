//! Operation cases, the f64 oracle, error metrics and synthetic weights for testing kovar backends.
