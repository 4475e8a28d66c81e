//! Goals in, sizes out: the plan of a URL filter. Allocates nothing.

use crate::error::{Error, Result};
use crate::filters::{BloomPlan, check_capacity, check_error_rate};
use crate::placement::Layout;
use crate::positions::Derivation;

/// More layers than this are refused; deeper segments belong to the last one.
pub const MAX_LAYERS: usize = 64;

/// How the segments of a URL become the address in X, and what the layers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Bind {
    /// The XOR of the segments' digests, each salted by its depth. Layers hold the addresses of prefixes.
    #[default]
    SaltedXor,
    /// A rolling hash of the segments. Layers hold the addresses of prefixes.
    Ordered,
    /// The paper to the letter: the XOR of the segments' positions. Layers hold bare segments.
    Xor,
}

impl Bind {
    pub(crate) const ALL: [Bind; 3] = [Bind::SaltedXor, Bind::Ordered, Bind::Xor];

    /// The name users and files know it by.
    pub fn name(self) -> &'static str {
        match self {
            Bind::SaltedXor => "salted_xor",
            Bind::Ordered => "ordered",
            Bind::Xor => "xor",
        }
    }

    /// The binding of that name.
    pub fn parse(name: &str) -> Result<Self> {
        Bind::ALL.into_iter().find(|bind| bind.name() == name).ok_or_else(|| {
            Error::parameter(
                "bind",
                name,
                "\"salted_xor\", \"ordered\" or \"xor\"",
                "leave it out for the default, \"salted_xor\"",
            )
        })
    }
}

/// How many distinct prefixes each layer is made for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum LayerSizes {
    /// As many as URLs, which is enough for any of them: a URL has one prefix of each depth.
    #[default]
    Uniform,
    /// These, from the root on; the last one for every deeper layer.
    Expected(Vec<u64>),
}

/// The goals of a URL filter.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlPlan {
    /// Distinct URLs.
    pub capacity: u64,
    /// Target of X, and so of the whole, and of each layer.
    pub error_rate: f64,
    /// Layers at most.
    pub max_layers: u32,
    /// How segments are bound.
    pub bind: Bind,
    /// What the layers are made for.
    pub layer_sizes: LayerSizes,
}

impl UrlPlan {
    /// The plan, if every field is one that can be built. Files pass through here too.
    pub fn checked(self) -> Result<Self> {
        check_capacity(self.capacity)?;
        check_error_rate(self.error_rate)?;
        if !(1..=MAX_LAYERS as u32).contains(&self.max_layers) {
            return Err(Error::parameter(
                "max_layers",
                self.max_layers,
                "between 1 and 64",
                "deeper segments are joined into the last layer's",
            ));
        }
        if self.bind == Bind::Xor && self.layer_sizes != LayerSizes::Uniform {
            return Err(Error::parameter(
                "layer_sizes",
                self.layer_sizes.name(),
                "\"uniform\" with bind=\"xor\"",
                "positions of one size are XORed; bind=\"salted_xor\" takes any sizes",
            ));
        }
        if let LayerSizes::Expected(sizes) = &self.layer_sizes {
            let count = sizes.len();
            if !(1..=self.max_layers as usize).contains(&count) {
                return Err(Error::parameter(
                    "layer_sizes",
                    format!("{count} numbers"),
                    "one number for each layer, at least one",
                    "UrlFilter.measure(urls) counts the prefixes of a sample",
                ));
            }
            if let Some(wrong) = sizes.iter().find(|size| check_capacity(**size).is_err()) {
                return Err(Error::parameter(
                    "layer_sizes",
                    wrong,
                    "numbers between 1 and 2**48",
                    "give the number of distinct prefixes you expect at each depth",
                ));
            }
        }
        self.whole()?;
        Ok(self)
    }

    /// The sizes of X.
    pub fn whole(&self) -> Result<BloomPlan> {
        self.for_keys(self.capacity, self.error_rate)
    }

    /// The sizes of the layer at a depth, from 1 on.
    pub fn layer(&self, depth: u32) -> Result<BloomPlan> {
        self.for_keys(self.keys(depth), self.error_rate)
    }

    /// The keys that a part is made for: X is at depth 0.
    fn keys(&self, depth: u32) -> u64 {
        match &self.layer_sizes {
            LayerSizes::Expected(sizes) if depth > 0 => {
                let at = (depth - 1) as usize;
                sizes.get(at).or(sizes.last()).copied().unwrap_or(self.capacity)
            }
            _ => self.capacity,
        }
    }

    /// Whether a file with these goals may have this part.
    pub(super) fn makes(&self, depth: u32, part: &BloomPlan) -> Result<bool> {
        let keys = self.keys(depth);
        part.is_made_by(self.error_rate, |error| self.for_keys(keys, error))
    }

    fn for_keys(&self, keys: u64, error_rate: f64) -> Result<BloomPlan> {
        let how = Derivation::Enhanced;
        if self.bind != Bind::Xor {
            return BloomPlan::for_goal(keys, error_rate, None, how);
        }
        let plan = BloomPlan::for_goal(keys, error_rate, Some(Layout::Classic), how)?;
        // The XOR of numbers below a power of two is below it too; of other numbers it need not be.
        BloomPlan { bits: plan.bits.next_power_of_two(), ..plan }.checked()
    }

    /// Refuses to go on when `other` has other goals.
    pub(super) fn require_same(&self, other: &UrlPlan) -> Result<()> {
        if self.bind != other.bind {
            return Err(Error::incompatible("bind", self.bind.name(), other.bind.name()));
        }
        if self.capacity != other.capacity {
            return Err(Error::incompatible("capacity", self.capacity, other.capacity));
        }
        if self.error_rate != other.error_rate {
            return Err(Error::incompatible("error_rate", self.error_rate, other.error_rate));
        }
        if self.max_layers != other.max_layers {
            return Err(Error::incompatible("max_layers", self.max_layers, other.max_layers));
        }
        if self.layer_sizes != other.layer_sizes {
            let (a, b) = (self.layer_sizes.name(), other.layer_sizes.name());
            return Err(Error::incompatible("layer_sizes", a, b));
        }
        Ok(())
    }
}

impl LayerSizes {
    /// What users write for it.
    pub fn name(&self) -> String {
        match self {
            LayerSizes::Uniform => "uniform".to_owned(),
            LayerSizes::Expected(sizes) => format!("{sizes:?}"),
        }
    }
}
