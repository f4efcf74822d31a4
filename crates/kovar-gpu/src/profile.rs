//! The device time of a program's dispatches, as a table and as a Chrome trace.

use std::fmt::{self, Write as _};

/// A dispatch that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchTime {
    /// The name of the node's operation.
    pub op: &'static str,
    /// The kernel's entry point.
    pub kernel: &'static str,
    /// The position of its node in the program's segment.
    pub node: usize,
    /// When it began, in nanoseconds since the first dispatch began.
    pub start: u64,
    /// Its time, in nanoseconds.
    pub nanoseconds: u64,
}

/// The device times of one or more launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The dispatches in the order in which they ran.
    pub dispatches: Vec<DispatchTime>,
}

/// The time of all dispatches of a kernel for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// The operation's name.
    pub op: &'static str,
    /// The kernel's entry point.
    pub kernel: &'static str,
    /// The number of dispatches.
    pub count: usize,
    /// The sum of their times, in nanoseconds.
    pub nanoseconds: u64,
}

impl Profile {
    /// Makes a profile of dispatches with times on the device's clock.
    pub(crate) fn new(mut dispatches: Vec<DispatchTime>) -> Self {
        let begin = dispatches.iter().map(|d| d.start).min().unwrap_or(0);
        for dispatch in &mut dispatches {
            dispatch.start -= begin;
        }
        Self { dispatches }
    }

    /// The sum of all dispatches' times, in nanoseconds.
    pub fn nanoseconds(&self) -> u64 {
        self.dispatches.iter().map(|d| d.nanoseconds).sum()
    }

    /// The times by operation and kernel, the longest first.
    pub fn kernels(&self) -> Vec<KernelTime> {
        let mut kernels: Vec<KernelTime> = Vec::new();
        for dispatch in &self.dispatches {
            let same = |k: &&mut KernelTime| (k.op, k.kernel) == (dispatch.op, dispatch.kernel);
            let known = kernels.iter_mut().find(same);
            match known {
                Some(kernel) => {
                    kernel.count += 1;
                    kernel.nanoseconds += dispatch.nanoseconds;
                }
                None => kernels.push(KernelTime {
                    op: dispatch.op,
                    kernel: dispatch.kernel,
                    count: 1,
                    nanoseconds: dispatch.nanoseconds,
                }),
            }
        }
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.nanoseconds));
        kernels
    }
}

/// Profiles in Chrome's trace event format (JSON), for `chrome://tracing` and Perfetto. Each
/// dispatch is a complete event, in microseconds since its profile began, on a thread with the
/// profile's name.
pub fn chrome_trace<'p>(profiles: impl IntoIterator<Item = (&'p str, &'p Profile)>) -> String {
    let mut events = Vec::new();
    for (at, (name, profile)) in profiles.into_iter().enumerate() {
        let (thread, name) = (at + 1, escaped(name));
        events.push(format!(
            "{{\"ph\":\"M\",\"pid\":1,\"tid\":{thread},\"name\":\"thread_name\",\
             \"args\":{{\"name\":\"{name}\"}}}}"
        ));
        events.extend(profile.dispatches.iter().map(|dispatch| {
            let microseconds =
                |nanoseconds: u64| format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
            format!(
                "{{\"ph\":\"X\",\"pid\":1,\"tid\":{thread},\"name\":\"{}\",\"cat\":\"{}\",\
                 \"ts\":{},\"dur\":{},\"args\":{{\"node\":{}}}}}",
                escaped(dispatch.kernel),
                escaped(dispatch.op),
                microseconds(dispatch.start),
                microseconds(dispatch.nanoseconds),
                dispatch.node,
            )
        }));
    }
    format!(
        "{{\"traceEvents\":[{}],\"displayTimeUnit\":\"ns\"}}",
        events.join(",")
    )
}

/// The text, escaped for a JSON string.
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

/// A table by operation and kernel: dispatches, microseconds in all and on average, share of the
/// time.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = self.kernels();
        let all = self.nanoseconds();
        let widest = |name: fn(&KernelTime) -> &'static str, title: usize| {
            let widths = kernels.iter().map(|kernel| name(kernel).len());
            widths.max().unwrap_or(0).max(title)
        };
        let ops = widest(|kernel| kernel.op, "operation".len());
        let names = widest(|kernel| kernel.kernel, "kernel".len());
        writeln!(
            f,
            "{:ops$}  {:names$} {:>10} {:>12} {:>10} {:>6}",
            "operation", "kernel", "dispatches", "us", "us each", "%"
        )?;
        let mut row = |op: &str, kernel: &str, count: usize, nanoseconds: u64| {
            let microseconds = nanoseconds as f64 / 1000.0;
            let each = microseconds / count.max(1) as f64;
            let share = 100.0 * nanoseconds as f64 / all.max(1) as f64;
            writeln!(
                f,
                "{op:ops$}  {kernel:names$} {count:>10} {microseconds:>12.1} {each:>10.2} {share:>6.1}"
            )
        };
        for kernel in &kernels {
            row(kernel.op, kernel.kernel, kernel.count, kernel.nanoseconds)?;
        }
        row("all", "", self.dispatches.len(), all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let dispatch = |kernel, node, start, nanoseconds| DispatchTime {
            op: kernel,
            kernel,
            node,
            start,
            nanoseconds,
        };
        Profile::new(vec![
            dispatch("add", 0, 100, 1500),
            dispatch("mul", 1, 1600, 6000),
            dispatch("add", 2, 7600, 500),
        ])
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
        let profile = profile();
        let trace = chrome_trace([("a \"GPU\"", &profile), ("another", &profile)]);
        let json: serde_json::Value = serde_json::from_str(&trace).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 2 * 4);
        assert_eq!(events[0]["args"]["name"], "a \"GPU\"");
        assert_eq!(events[2]["name"], "mul");
        assert_eq!(events[2]["ts"], 1.5);
        assert_eq!(events[2]["dur"], 6.0);
        assert_eq!(
            (&events[2]["tid"], &events[6]["tid"]),
            (&1.into(), &2.into())
        );
    }
}
