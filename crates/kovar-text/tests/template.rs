//! Templates that use the constructs of those of real models.

use std::time::{Duration, UNIX_EPOCH};

use kovar_text::{
    ChatTemplate, Message, RenderOptions, TemplateError, TemplateKind, Tokenizer, TokenizerSpec,
};

const OPTIONS: RenderOptions<'static> = RenderOptions {
    add_generation_prompt: true,
    bos_token: "<bos>",
    eos_token: "<eos>",
};

fn conversation(turns: &[(&str, &str)]) -> Vec<Message> {
    turns
        .iter()
        .map(|&(role, content)| Message::new(role, content))
        .collect()
}

fn render(source: &str, turns: &[(&str, &str)]) -> Result<String, TemplateError> {
    ChatTemplate::from_source(source)?.render(&conversation(turns), OPTIONS)
}

/// Like SmolLM2's: ChatML with a default system message if the conversation has none.
const CHATML_WITH_DEFAULT: &str = "\
{% for m in messages %}
{% if loop.first and m['role'] != 'system' %}
{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
{%- endif %}
{{ '<|im_start|>' ~ m['role'] ~ '\\n' ~ m['content'] ~ '<|im_end|>' ~ '\\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

#[test]
fn chatml_with_a_default_system_message() {
    let text = render(
        CHATML_WITH_DEFAULT,
        &[("user", "Hi"), ("assistant", "Yes?")],
    )
    .unwrap();
    assert_eq!(
        text,
        "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n\
         <|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>assistant\n"
    );
    let text = render(
        CHATML_WITH_DEFAULT,
        &[("system", "Be brief."), ("user", "Hi")],
    )
    .unwrap();
    assert_eq!(
        text,
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n\
         <|im_start|>assistant\n"
    );
}

/// Like Llama 3's: slices, defaults, dates, trimmed text.
const HEADERS: &str = "\
{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now('%d %b %Y') %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = '' %}
{%- endif %}
{{- '<|head|>system<|/head|>\\n\\nToday is ' + date_string + '.\\n' + system + '<|eot|>' }}
{%- if tools is not none %}
    {{- 'tools' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role not in ['user', 'assistant'] %}
        {{- raise_exception('Unknown role: ' + message.role) }}
    {%- endif %}
    {{- '<|head|>' + message['role'] + '<|/head|>\\n\\n' + message['content'].strip() + '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\\n\\n' }}
{%- endif %}";

#[test]
fn headers_with_a_date_and_a_separate_system_message() {
    let template = ChatTemplate::from_source(HEADERS)
        .unwrap()
        .with_time(UNIX_EPOCH + Duration::from_secs(1_735_689_599));
    let messages = conversation(&[
        ("system", " Be kind. "),
        ("user", "  Hi\n"),
        ("assistant", "Yes"),
    ]);
    assert_eq!(
        template.render(&messages, OPTIONS).unwrap(),
        "<bos><|head|>system<|/head|>\n\nToday is 31 Dec 2024.\nBe kind.<|eot|>\
         <|head|>user<|/head|>\n\nHi<|eot|><|head|>assistant<|/head|>\n\nYes<|eot|>\
         <|head|>assistant<|/head|>\n\n"
    );
    let no_prompt = RenderOptions {
        add_generation_prompt: false,
        ..OPTIONS
    };
    let text = template.render(&messages[1..2], no_prompt).unwrap();
    assert!(text.ends_with("user<|/head|>\n\nHi<|eot|>"), "{text}");
}

#[test]
fn a_rejection_carries_the_templates_message() {
    let error = render(HEADERS, &[("narrator", "Once")]).unwrap_err();
    assert!(
        matches!(&error, TemplateError::Refused { message } if message == "Unknown role: narrator")
    );
    assert_eq!(
        error.to_string(),
        "the chat template rejects this conversation: Unknown role: narrator"
    );
}

/// Like Qwen's: namespaces, reversed loops, string methods, macros.
const NAMESPACES: &str = "\
{%- macro turn(role, text) -%}
<|im_start|>{{ role }}
{{ text }}<|im_end|>
{% endmacro -%}
{%- set ns = namespace(last_query=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == 'user' and not message.content.startswith('<tool') %}
        {%- set ns.last_query = index %}
        {%- set ns.found = true %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content %}
        {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- if loop.index0 > ns.last_query and (loop.last or thought) %}
            {%- set content = '<think>' ~ thought ~ '</think>' ~ content %}
        {%- endif %}
    {%- endif %}
    {%- if message.tool_calls %}
        {%- continue %}
    {%- endif %}
    {{- turn(message.role, content) }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think></think>' }}
    {%- endif %}
{%- endif %}";

#[test]
fn thoughts_are_kept_after_the_last_question_only() {
    let turns = [
        ("user", "1+1?"),
        ("assistant", "<think>\neasy\n</think>\n\n2"),
        ("user", "2+2?"),
        ("assistant", "<think>\nhm\n</think>\n\n4"),
    ];
    assert_eq!(
        render(NAMESPACES, &turns).unwrap(),
        "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n\
         <|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n<think>hm</think>4<|im_end|>\n\
         <|im_start|>assistant\n"
    );
}

#[test]
fn blocks_remove_their_own_lines() {
    let source =
        "{% if true %}\n  {% set x = 1 %}\na\n{% endif %}\n  {# note #}\nb{{ x is defined }}\n";
    assert_eq!(render(source, &[]).unwrap(), "a\nbTrue");
}

#[test]
fn json_is_pythons() {
    let source = "{{ messages[0]|tojson }} {{ messages|tojson(indent=2) }} {{ [1, true, none, 0.5]|tojson }}";
    assert_eq!(
        render(source, &[("user", "<a> \"é\"\n")]).unwrap(),
        "{\"role\": \"user\", \"content\": \"<a> \\\"é\\\"\\n\"} \
         [\n  {\n    \"role\": \"user\",\n    \"content\": \"<a> \\\"é\\\"\\n\"\n  }\n] [1, true, null, 0.5]"
    );
}

#[test]
fn text_is_not_escaped_for_html() {
    assert_eq!(
        render("{{ messages[0].content }}", &[("user", "<b> & 'c'")]).unwrap(),
        "<b> & 'c'"
    );
}

#[test]
fn a_source_that_does_not_parse_names_the_line() {
    let error = ChatTemplate::from_source("a\n{% if %}\n").unwrap_err();
    assert!(
        matches!(error, TemplateError::Syntax { line: 2, .. }),
        "{error:?}"
    );
    let error = ChatTemplate::from_source(&"x".repeat(2 << 20)).unwrap_err();
    assert!(matches!(error, TemplateError::SourceTooLong { .. }));
}

#[test]
fn a_failing_expression_names_the_line() {
    let error = render("\n\n{{ messages[0].nothing.more }}", &[("user", "")]).unwrap_err();
    assert!(
        matches!(error, TemplateError::Render { line: 3, .. }),
        "{error:?}"
    );
}

#[test]
fn hostile_templates_are_stopped() {
    let endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    assert!(matches!(
        render(endless, &[]),
        Err(TemplateError::OutOfFuel { .. })
    ));
    let doubling = "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}\
                    {% set ns.s = ns.s ~ ns.s %}{% endfor %}";
    assert!(matches!(
        render(doubling, &[]),
        Err(TemplateError::OutOfFuel { .. })
    ));
    let replacing = "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}\
                     {% set ns.s = ns.s.replace('x', 'xxxxxxxx') %}{% endfor %}";
    assert!(render(replacing, &[]).is_err());
    let long = "{% set s = 'x' * 1000000 %}{% for i in range(1000) %}{{ s }}{% endfor %}";
    assert!(matches!(
        render(long, &[]),
        Err(TemplateError::OutputTooLong { .. } | TemplateError::OutOfFuel { .. })
    ));
    let huge = "{{ 'x' * 1000000000000000 }}";
    assert!(render(huge, &[]).is_err());
    let nested = format!(
        "{}1{}",
        "{{ ".to_owned() + &"(".repeat(100_000),
        ")".repeat(100_000)
    );
    assert!(render(&nested, &[]).is_err());
    let calls = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    assert!(render(calls, &[]).is_err());
    let includes = "{% include '/etc/hostname' %}";
    assert!(render(includes, &[]).is_err());
}

#[test]
fn values_that_grow_quickly_are_refused() {
    let grown = |start: &str, step: &str, times: usize, end: &str| {
        format!(
            "{{% set ns = namespace(x={start}, y={start}) %}}{{% for i in range({times}) %}}{step}\
             {{% endfor %}}{end}"
        )
    };
    let deep = "{% set ns.x = [ns.x] %}";
    let doubled = "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}";
    let doubled_map = "{% set ns.x = {'a': ns.x, 'b': ns.x} %}";
    let sources = [
        grown("[1]", deep, 99_999, "{{ ns.x|tojson|length }}"),
        grown("[1]", deep, 99_999, ""),
        grown("[1]", doubled, 60, "{{ ns.x|tojson }}"),
        grown("[1]", doubled, 60, "{{ ns.x }}"),
        grown("[1]", doubled, 60, "{{ ns.x == ns.y }}"),
        grown("[1]", doubled, 60, "{{ ns.x ~ '' }}"),
        grown("[1]", doubled_map, 60, "{{ ns.x|tojson(2) }}"),
        grown("[1]", "{% set ns.x = ns.x + ns.x %}", 40, ""),
        grown("[1]", "{% set ns.x = ns.x[0:] * 8 %}", 40, ""),
        grown(
            "'x'",
            "{% set ns.x | batch(2, [ns.x, ns.x]) %}a{% endset %}",
            99_999,
            "",
        ),
        "{% set x = [1] %}".to_owned() + &"{% set x = [x, x] %}".repeat(60) + "{{ x }}",
        "{{ '{:>1000000000}'.format('x') }}".to_owned(),
        "{{ '{:>{}}'.format('x', 1000000000) }}".to_owned(),
        "{{ '%1000000000s'|format('x') }}".to_owned(),
    ];
    for source in sources {
        let Err(error) = render(&source, &[]) else {
            panic!("{source} is rendered");
        };
        assert!(
            matches!(
                error,
                TemplateError::Render { .. } | TemplateError::OutOfFuel { .. }
            ),
            "{source}: {error:?}"
        );
    }
}

#[test]
fn a_namespace_never_contains_itself() {
    let source =
        "{% set ns = namespace(x=1) %}{% set ns.x = ns %}{% set ns.y = [ns] %}{{ ns|tojson }}";
    assert_eq!(
        render(source, &[]).unwrap(),
        "{\"x\": {\"x\": 1}, \"y\": [{\"x\": {\"x\": 1}}]}"
    );
}

#[test]
fn work_that_the_engine_does_not_count_is_stopped() {
    let list = "[[[[[0] * 9999] * 9999] * 9999] * 9999]";
    let error = render(&format!("{{{{ {list} == {list} }}}}"), &[]).unwrap_err();
    assert!(matches!(error, TemplateError::TooSlow { .. }), "{error:?}");
}

fn tokenizer(tokens: &[&str], chat_template: Option<&str>) -> Tokenizer {
    Tokenizer::from_spec(TokenizerSpec {
        model: "gpt2".into(),
        pre: Some("gpt-2".into()),
        tokens: tokens.iter().map(|token| token.to_string()).collect(),
        merges: Some(Vec::new()),
        bos: Some(0),
        chat_template: chat_template.map(str::to_owned),
        ..TokenizerSpec::default()
    })
    .unwrap()
}

#[test]
fn the_form_follows_the_file_or_the_vocabulary() {
    let turns = conversation(&[
        ("system", "Be kind."),
        ("user", "Hi"),
        ("assistant", "Yes?"),
    ]);

    let own = tokenizer(&["a", "b"], Some("own {{ bos_token }}"));
    let template = ChatTemplate::for_tokenizer(&own).unwrap();
    assert_eq!(template.kind(), TemplateKind::Source);
    assert_eq!(
        template.render(&turns, RenderOptions::new(&own)).unwrap(),
        "own a"
    );

    let chatml = tokenizer(&["<|im_start|>", "<|im_end|>"], None);
    let template = ChatTemplate::for_tokenizer(&chatml).unwrap();
    assert_eq!(template.kind().to_string(), "ChatML");
    assert_eq!(
        template.render(&turns, OPTIONS).unwrap(),
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n\
         <|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>assistant\n"
    );

    let plain = tokenizer(&["a"], None);
    let template = ChatTemplate::for_tokenizer(&plain).unwrap();
    assert_eq!(template.kind().to_string(), "User: / Assistant:");
    assert_eq!(template.kind().stop_strings(), ["\nUser:"]);
    assert_eq!(
        template.render(&turns, OPTIONS).unwrap(),
        "Be kind.\n\nUser: Hi\nAssistant: Yes?\nAssistant:"
    );
}
