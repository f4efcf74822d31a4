use kovar::quantize::Mix;

/// Parses the name of a mix of number types.
pub fn mix(name: &str) -> Result<Mix, String> {
    Mix::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Mix::all().map(Mix::name).collect();
        format!("expected one of {}", names.join(", "))
    })
}
