// Elements of every plain dtype as exact numbers, and numbers rounded to elements.

import package::shared::wide::funnel;

// `mantissa 2^exponent`, negative or not. The mantissa's first bit is 1, and the binary point
// follows it.
struct Number {
    kind: u32,
    negative: bool,
    exponent: i32,
    high: u32,
    low: u32,
}

const ZERO = 0u;
const FINITE = 1u;
const INFINITE = 2u;
const NO_NUMBER = 3u;

const TYPE_F32 = 0u;
const TYPE_F16 = 1u;
const TYPE_BF16 = 2u;
const TYPE_F8E4M3 = 3u;
const TYPE_F8E5M2 = 4u;
const TYPE_F64 = 5u;
const TYPE_I8 = 6u;
const TYPE_U8 = 7u;
const TYPE_I16 = 8u;
const TYPE_I32 = 9u;
const TYPE_I64 = 10u;
const TYPE_BOOL = 11u;

// The bits of the exponent and of the mantissa of floats of up to 32 bits.
fn format_of(dtype: u32) -> vec2<u32> {
    switch dtype {
        case TYPE_F16 { return vec2<u32>(5u, 10u); }
        case TYPE_BF16 { return vec2<u32>(8u, 7u); }
        case TYPE_F8E4M3 { return vec2<u32>(4u, 3u); }
        case TYPE_F8E5M2 { return vec2<u32>(5u, 2u); }
        default { return vec2<u32>(8u, 23u); }
    }
}

// An integer of two words times `2^exponent`.
fn number_of(negative: bool, high: u32, low: u32, exponent: i32) -> Number {
    if high == 0u && low == 0u {
        return Number(ZERO, negative, 0, 0u, 0u);
    }
    if high == 0u {
        let zeros = countLeadingZeros(low);
        return Number(FINITE, negative, exponent + 31 - i32(zeros), low << zeros, 0u);
    }
    let zeros = countLeadingZeros(high);
    let top = funnel(high, low, zeros);
    return Number(FINITE, negative, exponent + 63 - i32(zeros), top, low << zeros);
}

fn float_number(bits: u32, dtype: u32) -> Number {
    let format = format_of(dtype);
    let negative = ((bits >> (format.x + format.y)) & 1u) == 1u;
    let most = (1u << format.x) - 1u;
    let biased = (bits >> format.y) & most;
    let mantissa = bits & ((1u << format.y) - 1u);
    // In F8_E4M3 the last exponent is that of numbers, except for its last code, NaN.
    let special = select(biased == most, (bits & 0x7fu) == 0x7fu, dtype == TYPE_F8E4M3);
    if special {
        let infinite = mantissa == 0u;
        return Number(select(NO_NUMBER, INFINITE, infinite), negative, 0, 0u, 0u);
    }
    let whole = mantissa | select(0u, 1u << format.y, biased != 0u);
    let bias = i32((1u << (format.x - 1u)) - 1u + format.y);
    return number_of(negative, 0u, whole, i32(max(biased, 1u)) - bias);
}

fn double_number(high: u32, low: u32) -> Number {
    let negative = high >= 0x80000000u;
    let biased = (high >> 20u) & 0x7ffu;
    let mantissa = high & 0xfffffu;
    if biased == 0x7ffu {
        let infinite = mantissa == 0u && low == 0u;
        return Number(select(NO_NUMBER, INFINITE, infinite), negative, 0, 0u, 0u);
    }
    let whole = mantissa | select(0u, 0x100000u, biased != 0u);
    return number_of(negative, whole, low, i32(max(biased, 1u)) - 1075);
}

fn integer_number(high: u32, low: u32) -> Number {
    let negative = high >= 0x80000000u;
    let below = 0u - low;
    let above = ~high + select(0u, 1u, low == 0u);
    return number_of(negative, select(high, above, negative), select(low, below, negative), 0);
}

// The upper word that extends the sign of an integer of one word.
fn sign_word(word: u32) -> u32 {
    return select(0u, 0xffffffffu, word >= 0x80000000u);
}

// The element whose bits are `words`, the lower word first.
fn decode_number(words: vec2<u32>, dtype: u32) -> Number {
    switch dtype {
        case TYPE_F64 { return double_number(words.y, words.x); }
        case TYPE_I8 {
            let word = words.x | select(0u, 0xffffff00u, (words.x & 0x80u) != 0u);
            return integer_number(sign_word(word), word);
        }
        case TYPE_U8 { return integer_number(0u, words.x); }
        case TYPE_I16 {
            let word = words.x | select(0u, 0xffff0000u, (words.x & 0x8000u) != 0u);
            return integer_number(sign_word(word), word);
        }
        case TYPE_I32 { return integer_number(sign_word(words.x), words.x); }
        case TYPE_I64 { return integer_number(words.y, words.x); }
        case TYPE_BOOL { return integer_number(0u, min(words.x, 1u)); }
        default { return float_number(words.x, dtype); }
    }
}

// The bits of the greatest number of a float dtype of up to 32 bits.
fn greatest_of(dtype: u32) -> u32 {
    let format = format_of(dtype);
    let infinity = ((1u << format.x) - 1u) << format.y;
    return select(infinity - 1u, 0x7eu, dtype == TYPE_F8E4M3);
}

// Rounds to nearest, ties to even.
fn encode_float(number: Number, dtype: u32) -> u32 {
    let format = format_of(dtype);
    let sign = select(0u, 1u << (format.x + format.y), number.negative);
    let greatest = greatest_of(dtype);
    if number.kind == ZERO {
        return sign;
    }
    if number.kind == INFINITE {
        return sign | (greatest + 1u);
    }
    if number.kind == NO_NUMBER {
        return sign | select((greatest + 1u) | (1u << (format.y - 1u)), 0x7fu, dtype == TYPE_F8E4M3);
    }
    // The exponent of the least normal number, which is also that of subnormals.
    let least = 2 - i32(1u << (format.x - 1u));
    let shared_exponent = max(number.exponent, least);
    let dropped = 31u - format.y + u32(shared_exponent - number.exponent);
    var kept = 0u;
    var rest = number.high;
    if dropped < 32u {
        kept = number.high >> dropped;
        rest = number.high << (32u - dropped);
    }
    let more = number.low != 0u;
    let half = 0x80000000u;
    let up = dropped <= 32u && (rest > half || (rest == half && (more || (kept & 1u) == 1u)));
    // The bound keeps numbers beyond the range from overflowing.
    let steps = min(u32(shared_exponent - least), 1u << format.x);
    let magnitude = (steps << format.y) + kept + select(0u, 1u, up);
    return sign | min(magnitude, greatest + 1u);
}

fn encode_double(number: Number) -> vec2<u32> {
    let sign = select(0u, 0x80000000u, number.negative);
    switch number.kind {
        case ZERO { return vec2<u32>(0u, sign); }
        case INFINITE { return vec2<u32>(0u, sign | 0x7ff00000u); }
        case NO_NUMBER { return vec2<u32>(0u, sign | 0x7ff80000u); }
        default {}
    }
    // The numbers of all other dtypes are normal in F64.
    let low = (number.low >> 11u) | (number.high << 21u);
    let rest = number.low & 0x7ffu;
    let up = rest > 0x400u || (rest == 0x400u && (low & 1u) == 1u);
    let rounded = low + select(0u, 1u, up);
    let carry = select(0u, 1u, up && rounded == 0u);
    let high = (u32(number.exponent + 1022) << 20u) + (number.high >> 11u) + carry;
    return vec2<u32>(rounded, sign | high);
}

// Rounds towards zero and clamps to integers of this many bits, in two's complement or unsigned.
fn encode_integer(number: Number, bits: u32, is_signed: bool) -> vec2<u32> {
    if number.kind == ZERO || number.kind == NO_NUMBER || (number.negative && !is_signed) {
        return vec2<u32>(0u);
    }
    // The greatest magnitude.
    let used = select(bits, bits - 1u, is_signed);
    var most = vec2<u32>(0xffffffffu);
    if used < 32u {
        most = vec2<u32>((1u << used) - 1u, 0u);
    } else if used < 64u {
        most.y = (1u << (used - 32u)) - 1u;
    }
    if number.negative {
        let low = most.x + 1u;
        most = vec2<u32>(low, most.y + select(0u, 1u, low == 0u));
    }
    var magnitude = most;
    if number.kind == FINITE && number.exponent < 0 {
        magnitude = vec2<u32>(0u);
    } else if number.kind == FINITE && number.exponent < 64 {
        let dropped = u32(63 - number.exponent);
        var whole = vec2<u32>(number.low, number.high);
        if dropped >= 32u {
            whole = vec2<u32>(number.high >> (dropped - 32u), 0u);
        } else if dropped > 0u {
            let low = (number.low >> dropped) | (number.high << (32u - dropped));
            whole = vec2<u32>(low, number.high >> dropped);
        }
        let beyond = whole.y > most.y || (whole.y == most.y && whole.x > most.x);
        magnitude = select(whole, most, beyond);
    }
    if number.negative {
        let above = ~magnitude.y + select(0u, 1u, magnitude.x == 0u);
        return vec2<u32>(0u - magnitude.x, above);
    }
    return magnitude;
}

// The bits of an element, the lower word first.
fn encode_number(number: Number, dtype: u32) -> vec2<u32> {
    switch dtype {
        case TYPE_F64 { return encode_double(number); }
        case TYPE_I8 { return encode_integer(number, 8u, true) & vec2<u32>(0xffu, 0u); }
        case TYPE_U8 { return encode_integer(number, 8u, false); }
        case TYPE_I16 { return encode_integer(number, 16u, true) & vec2<u32>(0xffffu, 0u); }
        case TYPE_I32 { return encode_integer(number, 32u, true); }
        case TYPE_I64 { return encode_integer(number, 64u, true); }
        case TYPE_BOOL { return vec2<u32>(select(1u, 0u, number.kind == ZERO), 0u); }
        default { return vec2<u32>(encode_float(number, dtype), 0u); }
    }
}
