// Integers of 64 bits as two words, the lower word first.

// The product of two words.
fn mul_wide(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
    let high = (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u);
    return vec2<u32>((second << 16u) | (low & 0xffffu), high);
}

fn add_wide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < b.x));
}

// The upper word of `high` and `low` shifted left by `shift`, which is less than 32.
fn funnel(high: u32, low: u32, shift: u32) -> u32 {
    return (high << shift) | select(low >> (32u - shift), 0u, shift == 0u);
}

// Quotient and remainder of a number whose upper word is less than the divisor.
fn div_wide(number: vec2<u32>, divisor: u32) -> vec2<u32> {
    var rest = number.y;
    var quotient = number.x;
    for (var i = 0u; i < 32u; i++) {
        let over = rest >= 0x80000000u;
        rest = (rest << 1u) | (quotient >> 31u);
        quotient = quotient << 1u;
        if over || rest >= divisor {
            rest -= divisor;
            quotient |= 1u;
        }
    }
    return vec2<u32>(quotient, rest);
}
