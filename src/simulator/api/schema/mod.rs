//! What the fields of a kind are: which lists merge and by which keys, which maps are one value, which fields exist.
//!
//! One tree serves server-side apply (`x-kubernetes-list-type`, `-list-map-keys`, `-map-type`), strategic merge
//! (`x-kubernetes-patch-merge-key`, `-patch-strategy`) and the check for unknown fields. Built-in kinds come from a table made
//! from the API server's own OpenAPI document; custom resources from their CRD. Must not read or change objects.

mod builtin;
mod crd;
mod decode;

use std::collections::BTreeMap;

pub use builtin::builtin;
pub use crd::of_crd;
pub use decode::{Findings, duplicate_fields, normalise};

/// What a value is, for merging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nothing is known: objects merge by member, lists are one value.
    Unknown,
    /// A string, number or boolean.
    Scalar,
    /// An object with named fields, or a free map: merged by member.
    Map,
    /// An object that is one value (`x-kubernetes-map-type: atomic`).
    AtomicMap,
    /// A list that is one value.
    List,
    /// A list of distinct scalars (`x-kubernetes-list-type: set`).
    Set,
    /// A list of objects told apart by keys ([`Node::keys`]).
    Keyed,
}

/// How strategic merge treats a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strategy<'a> {
    /// `x-kubernetes-patch-merge-key`: the member that tells items of a merged list apart; `None` with `merge` is a list of scalars.
    pub merge_key: Option<&'a str>,
    /// The list is merged; otherwise it is replaced.
    pub merge: bool,
    /// The object keeps only the members named in the patch (`retainKeys`).
    pub retain_keys: bool,
    /// The object is replaced as a whole.
    pub replace: bool,
}

/// What Go's encoder does with a field's zero value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Habit {
    /// A pointer: what is there stays, what is not there stays away.
    #[default]
    Keep,
    /// `omitempty`: a zero is left out.
    Drop,
    /// A struct: always written, empty at least.
    Empty,
    /// No `omitempty`: always written, as its zero at least.
    Zero,
    /// A time that is no pointer: always written, as null at least.
    Null,
}

/// What a scalar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    Text,
    /// Base64 text.
    Bytes,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// `resource.Quantity`.
    Quantity,
    /// `intstr.IntOrString`.
    IntOrText,
    /// `metav1.Time` and `metav1.MicroTime`.
    Time,
}

/// One type in a [`Schema`].
#[derive(Debug, Clone)]
pub(crate) struct Type {
    /// What it is.
    pub(crate) shape: Shape,
    /// Its named fields, by index.
    pub(crate) fields: BTreeMap<String, (usize, Habit)>,
    /// The type of values under other names.
    pub(crate) values: Option<usize>,
    /// The type of its items.
    pub(crate) items: Option<usize>,
    /// The keys of a keyed list.
    pub(crate) keys: Vec<String>,
    /// `x-kubernetes-patch-merge-key`.
    pub(crate) merge_key: Option<String>,
    /// `merge`, `retainKeys`, `replace` of `x-kubernetes-patch-strategy`.
    pub(crate) strategies: (bool, bool, bool),
    /// Members without a type of their own are kept (`x-kubernetes-preserve-unknown-fields`).
    pub(crate) open: bool,
    /// What kind of scalar it is.
    pub(crate) scalar: Option<Scalar>,
}

impl Type {
    pub(crate) fn of(shape: Shape) -> Self {
        Self {
            shape,
            fields: BTreeMap::new(),
            values: None,
            items: None,
            keys: Vec::new(),
            merge_key: None,
            strategies: (false, false, false),
            open: false,
            scalar: None,
        }
    }
}

/// The types of a set of kinds.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub(crate) types: Vec<Type>,
    /// (group, version, kind) → the type of the whole object.
    pub(crate) kinds: BTreeMap<(String, String, String), usize>,
}

impl Schema {
    /// The type of a kind's whole object.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<Node<'_>> {
        let at = *self.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned()))?;
        Some(Node { schema: self, at })
    }
}

/// One type, as a place in its schema.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    schema: &'a Schema,
    at: usize,
}

impl<'a> Node<'a> {
    fn ty(self) -> Option<&'a Type> {
        self.schema.types.get(self.at)
    }

    /// What it is.
    pub fn shape(self) -> Shape {
        self.ty().map_or(Shape::Unknown, |t| t.shape)
    }

    /// The type of the member `name`, of a named field or of a free map's values.
    pub fn field(self, name: &str) -> Option<Node<'a>> {
        let ty = self.ty()?;
        let at = ty.fields.get(name).map(|(at, _)| *at).or(ty.values)?;
        Some(Node { schema: self.schema, at })
    }

    /// Whether a member of this name may stand here.
    pub fn allows(self, name: &str) -> bool {
        self.ty().is_none_or(|t| t.open || t.values.is_some() || t.shape == Shape::Unknown || t.fields.contains_key(name))
    }

    /// The named fields with their habits; a free map has none.
    pub fn fields(self) -> impl Iterator<Item = (&'a str, Node<'a>, Habit)> {
        let schema = self.schema;
        self.ty().into_iter().flat_map(|t| &t.fields).map(move |(name, (at, habit))| (name.as_str(), Node { schema, at: *at }, *habit))
    }

    /// What a scalar is; `None` for what is none or not known.
    pub fn scalar(self) -> Option<Scalar> {
        self.ty()?.scalar
    }

    /// The type of the items of a list.
    pub fn items(self) -> Option<Node<'a>> {
        let at = self.ty()?.items?;
        Some(Node { schema: self.schema, at })
    }

    /// The keys of a keyed list.
    pub fn keys(self) -> &'a [String] {
        self.ty().map_or(&[], |t| &t.keys)
    }

    /// How strategic merge treats it.
    pub fn strategy(self) -> Strategy<'a> {
        self.ty().map_or_else(Strategy::default, |t| Strategy {
            merge_key: t.merge_key.as_deref(),
            merge: t.strategies.0,
            retain_keys: t.strategies.1,
            replace: t.strategies.2,
        })
    }
}
