//! Typed access, tried on good and bad values.

use super::*;

fn map(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_count_is_a_believable_whole_number() {
    for value in
        ["null", "-1", "0", "1.5", "4096.0", "\"4096\"", "[1]", "{}", "true", "1e300", "99999999999999999999"]
    {
        let map = map(&format!(r#"{{"hidden_size": {value}}}"#));
        let error = Keys::new(&map).count("hidden_size").unwrap_err();
        assert_eq!(error.key, "hidden_size");
        assert!(!error.found.is_empty() && error.expected.contains("1000000"), "{error}");
    }
    assert_eq!(Keys::new(&map(r#"{"hidden_size": 4096}"#)).count("hidden_size").unwrap().value, 4096);
}

#[test]
fn a_fault_in_a_list_says_where() {
    let map = map(r#"{"layer_types": ["full_attention", 3]}"#);
    assert_eq!(Keys::new(&map).texts("layer_types").unwrap_err().key, "layer_types[1]");
}

#[test]
fn unread_keys_are_named_unless_neutral_or_off() {
    let map = map(r#"{"hidden_size": 8, "bos_token_id": 1, "mla_scale": null, "use_x": false, "hyper": 4}"#);
    let keys = Keys::new(&map);
    keys.count("hidden_size").unwrap();
    assert_eq!(keys.all_read().unwrap_err().key, "hyper");
    keys.set_aside(&["hyper"]);
    assert_eq!(keys.all_read(), Ok(()));
}

#[test]
fn an_object_inside_is_named_by_its_path_and_its_strangers_are_reported() {
    let map = map(r#"{"text_config": {"hidden_size": 0, "hyper": 4}, "vision_config": {"depth": 3}}"#);
    let keys = Keys::new(&map);
    let text = keys.section("text_config").unwrap();
    assert_eq!(text.count("hidden_size").unwrap_err().key, "text_config.hidden_size");
    assert_eq!(text.count("vocab_size").unwrap_err().key, "text_config.vocab_size");
    assert_eq!(keys.all_read().unwrap_err().key, "vision_config, text_config.hyper");
    keys.set_aside(&["vision_config"]);
    keys.section("text_config").unwrap().set_aside(&["hyper"]);
    assert_eq!(keys.all_read(), Ok(()));
    assert_eq!(keys.section("audio_config").unwrap_err().key, "audio_config");
}

#[test]
fn a_class_may_know_a_key_by_several_names() {
    let (old, both) = (map(r#"{"n_layer": 3}"#), map(r#"{"n_layer": 3, "num_hidden_layers": 4}"#));
    let names = &["num_hidden_layers", "n_layer"];
    assert_eq!(Keys::new(&old).spelling(names), Ok("n_layer"));
    assert_eq!(Keys::new(&map("{}")).spelling(names), Ok("num_hidden_layers"));
    assert_eq!(Keys::new(&both).spelling(names).unwrap_err().key, "n_layer");
}

#[test]
fn decimals_are_fractions_of_integers() {
    let map = map(r#"{"a": 2.625, "b": 5, "c": 1e300, "d": -1.5, "e": "2"}"#);
    let keys = Keys::new(&map);
    assert_eq!(keys.decimal("a"), Ok([2625, 1000]));
    assert_eq!(keys.decimal("b"), Ok([5, 1]));
    for key in ["c", "d", "e", "f"] {
        assert_eq!(keys.decimal(key).unwrap_err().key, key);
    }
}

#[test]
fn zero_null_and_absence_all_mean_none_where_said() {
    for text in ["{}", r#"{"n_shared_experts": 0}"#, r#"{"n_shared_experts": null}"#] {
        assert_eq!(Keys::new(&map(text)).count_unless_zero("n_shared_experts").unwrap(), None);
    }
}
