//! Information about the machine from the system.

/// The product name of the processor.
pub(crate) fn processor_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    field(&text, "model name").map(str::to_owned)
}

/// Memory of the machine, in bytes.
pub(crate) fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = field(&text, "MemTotal")?.strip_suffix("kB")?.trim();
    kibibytes.parse::<u64>().ok()?.checked_mul(1024)
}

/// Threads that the process may run at once.
pub(crate) fn usable_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The text after `name` and a colon, in the first line with that name.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 85\nmodel name\t: A Processor\nflags:\n";
        assert_eq!(field(text, "model name"), Some("A Processor"));
        assert_eq!(field(text, "flags"), None);
        assert_eq!(field(text, "name"), None);
    }
}
