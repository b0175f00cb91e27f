//! Expected texts were written by `sigs.k8s.io/yaml` v1.6.0; the oracle of `discovery` asks it about thousands more.

use super::*;

fn check(json: &str, expected: &[&str]) {
    let value: Value = serde_json::from_str(json).unwrap();
    assert_eq!(yaml(&value), expected.join("\n") + "\n", "{json}");
}

#[test]
fn layout_is_that_of_go_yaml() {
    check(
        r#"{ "b": [{ "y": 1, "x": [] }, [1, [2]], "s"], "a": { "k": {}, "l": null, "m": [true] } }"#,
        &["a:", "  k: {}", "  l: null", "  m:", "  - true", "b:", "- x: []", "  \"y\": 1", "- - 1", "  - - 2", "- s"],
    );
}

#[test]
fn words_are_quoted_that_mean_something() {
    check(
        r##"{"k":["","y","1","1.5e3","0x1F","017","1:30","2024-01-02","null","~",".inf","-","- a","a: b","a:b","a #b","a#b","'x","x'","\"","@a","*a","a ","\ta","---"]}"##,
        &[
            "k:",
            "- \"\"",
            "- \"y\"",
            "- \"1\"",
            "- \"1.5e3\"",
            "- \"0x1F\"",
            "- \"017\"",
            "- \"1:30\"",
            "- \"2024-01-02\"",
            "- \"null\"",
            "- \"~\"",
            "- \".inf\"",
            "- '-'",
            "- '- a'",
            "- 'a: b'",
            "- a:b",
            "- 'a #b'",
            "- a#b",
            "- '''x'",
            "- x'",
            "- '\"'",
            "- '@a'",
            "- '*a'",
            "- 'a '",
            "- \"\\ta\"",
            "- '---'",
        ],
    );
}

#[test]
fn breaks_and_odd_characters_are_written_as_go_yaml_writes_them() {
    check(
        r##"{"k":["a\nb","a\n","a\n\n"," a\n","\n","ü","\u2028","a\u2028b","\u00a0\u0007\ufeff","😀"]}"##,
        &[
            "k:",
            "- |-",
            "  a",
            "  b",
            "- |",
            "  a",
            "- |+",
            "  a",
            "",
            "- |2",
            "   a",
            "- |2+",
            "",
            "- ü",
            "- '\u{2028}'",
            "- 'a\u{2028}  b'",
            "- \"\u{a0}\\a\\uFEFF\"",
            "- \"\\U0001F600\"",
        ],
    );
}

#[test]
fn long_lines_are_folded() {
    check(
        r##"{"k":"aaaaaaaaaa bbbbbbbbbb cccccccccc dddddddddd eeeeeeeeee ffffffffff gggggggggg hhhhhhhhhh iiiiiiiiii","l":"1: aaaaaaaaa bbbbbbbbbb cccccccccc dddddddddd eeeeeeeeee ffffffffff gggggggggg hhhhhhhhhh iiiiiiiiii'","m":"\u0001 aaaaaaa bbbbbbbbbb cccccccccc dddddddddd eeeeeeeeee ffffffffff gggggggggg hhhhhhhhhh iiiiiiiiii"}"##,
        &[
            "k: aaaaaaaaaa bbbbbbbbbb cccccccccc dddddddddd eeeeeeeeee ffffffffff gggggggggg hhhhhhhhhh",
            "  iiiiiiiiii",
            "l: '1: aaaaaaaaa bbbbbbbbbb cccccccccc dddddddddd eeeeeeeeee ffffffffff gggggggggg",
            "  hhhhhhhhhh iiiiiiiiii'''",
            "m: \"\\x01 aaaaaaa bbbbbbbbbb cccccccccc dddddddddd eeeeeeeeee ffffffffff gggggggggg",
            "  hhhhhhhhhh iiiiiiiiii\"",
        ],
    );
}

#[test]
fn keys_stand_in_go_yamls_order() {
    check(
        r##"{"a10":1,"a9":2,"b":3,"B":4,"_":5,"1":6,"a 1":7,"a":8,"a: b":9,"true":0}"##,
        &["_: 5", "\"1\": 6", "B: 4", "a: 8", "a 1: 7", "'a: b': 9", "a9: 2", "a10: 1", "b: 3", "\"true\": 0"],
    );
}

#[test]
fn numbers_and_nested_nothings_are_written_as_go_yaml_writes_them() {
    check(
        r##"{"f":[1.0,0.5,1234567.5,1e100,0.00001,-2.5e-7,123456.0],"n":[18446744073709551615,-9223372036854775808],"b":[true,null,{},[],[[]],[{}],[[1,2],[3]],[{"x":[{"y":{"z":1}}]}]]}"##,
        &[
            "b:",
            "- true",
            "- null",
            "- {}",
            "- []",
            "- - []",
            "- - {}",
            "- - - 1",
            "    - 2",
            "  - - 3",
            "- - x:",
            "    - \"y\":",
            "        z: 1",
            "f:",
            "- 1",
            "- 0.5",
            "- 1.2345675e+06",
            "- 1e+100",
            "- 1e-05",
            "- -2.5e-07",
            "- 123456",
            "\"n\":",
            "- 18446744073709551615",
            "- -9223372036854775808",
        ],
    );
}

#[test]
fn keys_that_fit_no_line_stand_behind_a_question_mark() {
    check(
        r##"{"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk":{"a":[1],"b":"c"},"l\nm":[1,{"a":2}],"n":{"long long":"x"}}"##,
        &[
            "? kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
            ": a:",
            "  - 1",
            "  b: c",
            "? |-",
            "  l",
            "  m",
            ": - 1",
            "  - a: 2",
            "\"n\":",
            "  long long: x",
        ],
    );
}
