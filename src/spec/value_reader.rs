//! Reads types from JSON values, by one reader for all: each type is compiled for it alone.
//!
//! As `serde_json` reads a value, but a struct is an object (`serde_json` takes a list too, by position), and a fault has
//! the path of its value.

use std::cell::OnceCell;
use std::fmt;

use serde::Deserializer;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde_json::{Error, Map, Value};

/// A fault of a value inside another.
#[derive(Debug)]
pub struct ValueFault {
    /// Path of the value, as `tiers[0].name`; empty for the whole.
    pub path: String,
    /// The message of `serde`.
    pub message: String,
}

/// The value of a type.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, ValueFault> {
    let fault = OnceCell::new();
    let place = ValuePlace { within: None, fault: &fault };
    T::deserialize(ValueReader { value, place: &place }).map_err(|error| {
        // An untagged type tries its forms: the first fault may be of one that was left again.
        let path = fault.into_inner().unwrap_or_default();
        ValueFault { path, message: error.to_string() }
    })
}

/// Where a value is, and the path of the first fault.
#[derive(Clone, Copy)]
struct ValuePlace<'p> {
    within: Option<(&'p ValuePlace<'p>, PathStep<'p>)>,
    fault: &'p OnceCell<String>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Key(&'p str),
    At(usize),
}

impl<'p> ValuePlace<'p> {
    fn inside(&'p self, step: PathStep<'p>) -> ValuePlace<'p> {
        ValuePlace { within: Some((self, step)), fault: self.fault }
    }

    fn failed(&self, error: Error) -> Error {
        self.fault.get_or_init(|| self.to_string());
        error
    }

    /// `result` with its fault at this place, unless a fault was found within.
    fn done<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| self.failed(error))
    }
}

impl fmt::Display for ValuePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((parent, step)) = &self.within else { return Ok(()) };
        parent.fmt(f)?;
        match step {
            PathStep::Key(key) if parent.within.is_none() => f.write_str(key),
            PathStep::Key(key) => write!(f, ".{key}"),
            PathStep::At(at) => write!(f, "[{at}]"),
        }
    }
}

#[derive(Clone, Copy)]
struct ValueReader<'de, 'p> {
    value: &'de Value,
    place: &'p ValuePlace<'p>,
}

impl<'de> ValueReader<'de, '_> {
    fn unexpected(&self) -> Unexpected<'de> {
        match self.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(one) => Unexpected::Bool(*one),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(whole), _) => Unexpected::Unsigned(whole),
                (None, Some(whole)) => Unexpected::Signed(whole),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        }
    }

    fn object<V: Visitor<'de>>(self, object: &'de Map<String, Value>, visitor: V) -> Result<V::Value, Error> {
        let mut entries = ObjectReader { left: object.iter(), value: None, place: self.place };
        let found = visitor.visit_map(&mut entries)?;
        match entries.left.len() {
            0 => Ok(found),
            _ => Err(Error::invalid_length(object.len(), &"fewer elements in map")),
        }
    }

    fn list<V: Visitor<'de>>(self, list: &'de [Value], visitor: V) -> Result<V::Value, Error> {
        let mut items = ListReader { left: list.iter().enumerate(), place: self.place };
        let found = visitor.visit_seq(&mut items)?;
        match items.left.len() {
            0 => Ok(found),
            _ => Err(Error::invalid_length(list.len(), &"fewer elements in array")),
        }
    }

    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(one) => visitor.visit_bool(*one),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(whole), _) => visitor.visit_u64(whole),
                (None, Some(whole)) => visitor.visit_i64(whole),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(list) => self.list(list, visitor),
            Value::Object(object) => self.object(object, visitor),
        }
    }
}

macro_rules! as_any {
    ($($method:ident($($name:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Error> {
            $(let _ = $name;)*
            self.place.done(self.any(visitor))
        })*
    };
}

impl<'de> Deserializer<'de> for ValueReader<'de, '_> {
    type Error = Error;

    as_any! {
        deserialize_any(); deserialize_bool(); deserialize_i8(); deserialize_i16(); deserialize_i32();
        deserialize_i64(); deserialize_i128(); deserialize_u8(); deserialize_u16(); deserialize_u32();
        deserialize_u64(); deserialize_u128(); deserialize_f32(); deserialize_f64(); deserialize_char();
        deserialize_str(); deserialize_string(); deserialize_bytes(); deserialize_byte_buf();
        deserialize_unit(); deserialize_seq(); deserialize_map(); deserialize_identifier();
        deserialize_unit_struct(name: &'static str); deserialize_tuple(length: usize);
        deserialize_tuple_struct(name: &'static str, length: usize);
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.place.done(visitor.visit_newtype_struct(self))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.place.done(match self.value {
            Value::Object(object) => self.object(object, visitor),
            _ => Err(Error::invalid_type(self.unexpected(), &visitor)),
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.place.done(match self.value {
            Value::String(name) => {
                visitor.visit_enum(VariantReader { name, value: None, place: *self.place })
            }
            Value::Object(object) => match object.iter().next().filter(|_| object.len() == 1) {
                Some((name, value)) => {
                    let place = self.place.inside(PathStep::Key(name));
                    visitor.visit_enum(VariantReader { name, value: Some(value), place })
                }
                None => Err(Error::invalid_value(Unexpected::Map, &"map with a single key")),
            },
            _ => Err(Error::invalid_type(self.unexpected(), &"string or map")),
        })
    }
}

struct ObjectReader<'de, 'p> {
    left: serde_json::map::Iter<'de>,
    value: Option<(&'de str, &'de Value)>,
    place: &'p ValuePlace<'p>,
}

impl<'de> MapAccess<'de> for &mut ObjectReader<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.left.next() else { return Ok(None) };
        self.value = Some((key, value));
        // A key that its object does not have is named by the path.
        let place = self.place.inside(PathStep::Key(key));
        place.done(seed.deserialize(KeyReader(key))).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (key, value) = self.value.take().ok_or_else(|| Error::custom("value is missing"))?;
        let place = self.place.inside(PathStep::Key(key));
        place.done(seed.deserialize(ValueReader { value, place: &place }))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

struct ListReader<'de, 'p> {
    left: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
    place: &'p ValuePlace<'p>,
}

impl<'de> SeqAccess<'de> for &mut ListReader<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((at, value)) = self.left.next() else { return Ok(None) };
        let place = self.place.inside(PathStep::At(at));
        place.done(seed.deserialize(ValueReader { value, place: &place })).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

/// A key of an object: a text, or the number that it spells.
struct KeyReader<'de>(&'de str);

macro_rules! number {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse::<$type>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for KeyReader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    number! {
        deserialize_i8 visit_i8 i8; deserialize_i16 visit_i16 i16; deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64; deserialize_u8 visit_u8 u8; deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32; deserialize_u64 visit_u64 u64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        BorrowedStrDeserializer::new(self.0).deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// A variant with its content, if any.
struct VariantReader<'de, 'p> {
    name: &'de str,
    value: Option<&'de Value>,
    place: ValuePlace<'p>,
}

impl<'de> EnumAccess<'de> for VariantReader<'de, '_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let name = seed.deserialize(IntoDeserializer::<Error>::into_deserializer(self.name))?;
        Ok((name, self))
    }
}

impl<'de> VariantReader<'de, '_> {
    fn content(&self, expected: &str) -> Result<ValueReader<'de, '_>, Error> {
        let value = self.value.ok_or_else(|| Error::invalid_type(Unexpected::UnitVariant, &expected))?;
        Ok(ValueReader { value, place: &self.place })
    }
}

impl<'de> VariantAccess<'de> for VariantReader<'de, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.value {
            Some(value) => serde::Deserialize::deserialize(ValueReader { value, place: &self.place }),
            None => Ok(()),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        self.place.done(seed.deserialize(self.content("newtype variant")?))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.content("tuple variant")?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.content("struct variant")?.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        a: u8,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Outer {
        one: Option<Inner>,
        many: Vec<Inner>,
        choice: Choice,
        pair: (u8, f64),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    enum Choice {
        Plain,
        Named { a: u8 },
    }

    #[test]
    fn a_struct_is_read_from_an_object_at_every_depth() {
        let read = |text: &str| {
            from_value::<Outer>(&serde_json::from_str(text).unwrap())
                .map_err(|fault| (fault.path, fault.message))
        };
        let whole =
            r#"{"one": {"a": 1}, "many": [{"a": 2}], "choice": {"Named": {"a": 3}}, "pair": [4, 5.5]}"#;
        let choice = Choice::Named { a: 3 };
        let outer = Outer { one: Some(Inner { a: 1 }), many: vec![Inner { a: 2 }], choice, pair: (4, 5.5) };
        assert_eq!(read(whole), Ok(outer));
        assert_eq!(
            read(&whole.replace(r#"{"Named": {"a": 3}}"#, r#""Plain""#)).unwrap().choice,
            Choice::Plain
        );
        for (object, list, at) in [
            (r#""one": {"a": 1}"#, r#""one": [1]"#, "one"),
            (r#"[{"a": 2}]"#, "[[2]]", "many[0]"),
            (r#"{"Named": {"a": 3}}"#, r#"{"Named": [3]}"#, "choice.Named"),
            (whole, r#"[{"a": 1}, [], "Plain", [4, 5.5]]"#, ""),
        ] {
            let (path, fault) = read(&whole.replace(object, list)).unwrap_err();
            assert!(fault.starts_with("invalid type: sequence, expected struct"), "{list}: {fault}");
            assert_eq!(path, at);
        }
        let (path, fault) = read(&whole.replace("2}]", "300}]")).unwrap_err();
        assert_eq!(
            (path.as_str(), fault.as_str()),
            ("many[0].a", "invalid value: integer `300`, expected u8")
        );
    }
}
