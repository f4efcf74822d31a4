//! The layers of a model, by the names of its tensors.

/// The layer that a tensor belongs to: its name up to the first part that is a number, such as
/// `blk.3` of `blk.3.ffn_up.weight`; `None` for tensors outside layers.
pub fn layer_of(name: &str) -> Option<&str> {
    let mut end = 0;
    for part in name.split('.') {
        end += part.len();
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return name.get(..end);
        }
        end += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::layer_of;

    #[test]
    fn a_layer_is_the_name_up_to_its_number() {
        let table = [
            ("blk.3.ffn_up.weight", Some("blk.3")),
            ("blk.13.cache.k", Some("blk.13")),
            (
                "model.layers.0.self_attn.q_proj.weight",
                Some("model.layers.0"),
            ),
            (
                "down_blocks.1.attentions.0.proj.weight",
                Some("down_blocks.1"),
            ),
            ("token_embd.weight", None),
            ("conv2d.weight", None),
            ("", None),
            ("..", None),
        ];
        for (name, layer) in table {
            assert_eq!(layer_of(name), layer, "{name}");
        }
    }
}
