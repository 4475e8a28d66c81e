//! Enums whose values users and files know by a name.

/// Gives an enum `ALL`, `name` and `parse`; the words are those of the error for any other name.
macro_rules! named {
    ($type:ident: $parameter:literal, $allowed:literal, $hint:literal; $($value:ident = $name:literal),+) => {
        impl $type {
            /// All of them, in the order of their numbers in files.
            pub const ALL: &[$type] = &[$($type::$value),+];

            /// The name users and files know it by.
            pub fn name(self) -> &'static str {
                match self { $($type::$value => $name),+ }
            }

            /// The one of that name.
            pub fn parse(name: &str) -> $crate::Result<Self> {
                let found = Self::ALL.iter().copied().find(|one| one.name() == name);
                found.ok_or_else(|| $crate::Error::parameter($parameter, name, $allowed, $hint))
            }
        }
    };
}

pub(crate) use named;
