//! The device time of a program's dispatches, as a table and as a Chrome trace.

use std::fmt::{self, Write as _};

/// A dispatch that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchTime {
    /// The kernel's entry point.
    pub kernel: &'static str,
    /// The node that it is a part of, by its place in the program's segment.
    pub node: usize,
    /// When it began, in nanoseconds since the program's first dispatch did.
    pub start: u64,
    /// How long it took, in nanoseconds.
    pub nanoseconds: u64,
}

/// The device times of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The dispatches in the order in which they ran.
    pub dispatches: Vec<DispatchTime>,
}

/// The time of all dispatches of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// The kernel's entry point.
    pub kernel: &'static str,
    /// How many dispatches there were.
    pub count: usize,
    /// The sum of their times, in nanoseconds.
    pub nanoseconds: u64,
}

impl Profile {
    /// The sum of all dispatches' times, in nanoseconds.
    pub fn nanoseconds(&self) -> u64 {
        self.dispatches.iter().map(|d| d.nanoseconds).sum()
    }

    /// The times by kernel, the longest first.
    pub fn kernels(&self) -> Vec<KernelTime> {
        let mut kernels: Vec<KernelTime> = Vec::new();
        for dispatch in &self.dispatches {
            let known = kernels.iter_mut().find(|k| k.kernel == dispatch.kernel);
            match known {
                Some(kernel) => {
                    kernel.count += 1;
                    kernel.nanoseconds += dispatch.nanoseconds;
                }
                None => kernels.push(KernelTime {
                    kernel: dispatch.kernel,
                    count: 1,
                    nanoseconds: dispatch.nanoseconds,
                }),
            }
        }
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.nanoseconds));
        kernels
    }

    /// The run in Chrome's trace event format (JSON), for `chrome://tracing` and Perfetto: a
    /// complete event per dispatch, in microseconds, on a thread named after the device.
    pub fn chrome_trace(&self, device: &str) -> String {
        let mut text = String::from("{\"traceEvents\":[");
        let name = escaped(device);
        let _ = write!(
            text,
            "{{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}}"
        );
        for dispatch in &self.dispatches {
            let microseconds =
                |nanoseconds: u64| format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
            let _ = write!(
                text,
                ",{{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"{}\",\"ts\":{},\"dur\":{},\"args\":{{\"node\":{}}}}}",
                escaped(dispatch.kernel),
                microseconds(dispatch.start),
                microseconds(dispatch.nanoseconds),
                dispatch.node,
            );
        }
        text.push_str("],\"displayTimeUnit\":\"ns\"}");
        text
    }
}

/// Text as it may stand in a JSON string.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// A table of the kernels: dispatches, microseconds in all and on average, share of the time.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = self.kernels();
        let all = self.nanoseconds();
        let width = kernels
            .iter()
            .map(|k| k.kernel.len())
            .max()
            .unwrap_or(0)
            .max(6);
        let row = |f: &mut fmt::Formatter<'_>, name: &str, count: usize, nanoseconds: u64| {
            let microseconds = nanoseconds as f64 / 1000.0;
            let each = microseconds / count.max(1) as f64;
            let share = 100.0 * nanoseconds as f64 / all.max(1) as f64;
            writeln!(
                f,
                "{name:width$} {count:>10} {microseconds:>12.1} {each:>10.2} {share:>6.1}"
            )
        };
        writeln!(
            f,
            "{:width$} {:>10} {:>12} {:>10} {:>6}",
            "kernel", "dispatches", "us", "us each", "%"
        )?;
        for kernel in kernels {
            row(f, kernel.kernel, kernel.count, kernel.nanoseconds)?;
        }
        row(f, "all", self.dispatches.len(), all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let dispatch = |kernel, node, start, nanoseconds| DispatchTime {
            kernel,
            node,
            start,
            nanoseconds,
        };
        Profile {
            dispatches: vec![
                dispatch("add", 0, 0, 1500),
                dispatch("mul", 1, 1500, 6000),
                dispatch("add", 2, 7500, 500),
            ],
        }
    }

    #[test]
    fn kernels_are_summed_and_sorted() {
        let kernels = profile().kernels();
        assert_eq!(kernels.len(), 2);
        assert_eq!((kernels[0].kernel, kernels[0].nanoseconds), ("mul", 6000));
        assert_eq!((kernels[1].count, kernels[1].nanoseconds), (2, 2000));
        let table = profile().to_string();
        assert_eq!(table.lines().count(), 4);
        assert!(
            table
                .lines()
                .nth(1)
                .is_some_and(|row| row.ends_with("75.0"))
        );
    }

    #[test]
    fn the_trace_is_json_with_an_event_per_dispatch() {
        let trace = profile().chrome_trace("a \"GPU\"");
        let json: serde_json::Value = serde_json::from_str(&trace).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 4);
        assert_eq!(events[0]["args"]["name"], "a \"GPU\"");
        assert_eq!(events[2]["name"], "mul");
        assert_eq!(events[2]["ts"], 1.5);
        assert_eq!(events[2]["dur"], 6.0);
    }
}
