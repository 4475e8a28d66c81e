//! Which place holds the smallest weight: a heap of four children a node that is mended late.
//!
//! Weights only grow, so a node may hold an old weight of its place: it stands too far up then, never too
//! far down. Raising a weight costs nothing here; only when the smallest is wanted are nodes at the top
//! brought up to date. A hot key is so moved once and then stays deep down. Equal weights are
//! ordered by place, so the answer does not depend on how the heap came about.

/// A weight, as bits that order as it does because it is not negative, and below them its place: one
/// number, so that the smaller of two is found without a branch that nobody could predict.
type Node = u128;

fn node(weight: f64, place: u32) -> Node {
    u128::from(weight.to_bits()) << 32 | u128::from(place)
}

fn place(node: Node) -> usize {
    node as u32 as usize
}

const CHILDREN: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    nodes: Vec<Node>,
}

impl Heap {
    /// A heap of all weights.
    pub(super) fn build(
        &mut self,
        weights: impl ExactSizeIterator<Item = f64>,
    ) -> Result<(), std::collections::TryReserveError> {
        self.nodes.clear();
        self.nodes.try_reserve_exact(weights.len())?;
        self.nodes.extend((0..).zip(weights).map(|(place, weight)| node(weight, place)));
        for node in (0..self.nodes.len().div_ceil(CHILDREN)).rev() {
            self.sink(node);
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node>()) as u64
    }

    /// The place of the smallest weight, zero in an empty heap.
    #[inline(always)]
    pub(super) fn least(&mut self, weight: impl Fn(usize) -> f64) -> usize {
        while let Some(old) = self.nodes.first().copied() {
            let now = node(weight(place(old)), old as u32);
            if old == now {
                return place(old);
            }
            self.nodes[0] = now;
            self.sink(0);
        }
        0
    }

    /// The smallest weight, without mending: only nodes that stand below it can hide it.
    pub(super) fn peek(&self, weight: impl Fn(usize) -> f64) -> f64 {
        let mut least = f64::MAX;
        let mut open = vec![0];
        while let Some(node) = open.pop() {
            let Some(found) = self.nodes.get(node) else { continue };
            if f64::from_bits((found >> 32) as u64) < least {
                least = least.min(weight(place(*found)));
                open.extend(CHILDREN * node + 1..=CHILDREN * node + CHILDREN);
            }
        }
        least
    }

    #[inline(always)]
    fn sink(&mut self, node: usize) {
        let mut node = node;
        let Some(moving) = self.nodes.get(node).copied() else { return };
        loop {
            let first = CHILDREN * node + 1;
            let which = match self.nodes.get(first..first + CHILDREN) {
                Some(&[a, b, c, d]) => {
                    let left = usize::from(b < a);
                    let right = 2 + usize::from(d < c);
                    let (x, y) = (a.min(b), c.min(d));
                    first + if y < x { right } else { left }
                }
                _ => match (first..self.nodes.len()).min_by_key(|child| self.nodes[*child]) {
                    Some(child) => child,
                    None => break,
                },
            };
            let smallest = self.nodes[which];
            if moving <= smallest {
                break;
            }
            self.nodes[node] = smallest;
            node = which;
        }
        self.nodes[node] = moving;
    }

    /// Whether every node is at most what its place weighs, and no parent is above its child.
    pub(super) fn is_sound(&self, weights: &[f64]) -> bool {
        let parents = self.nodes.iter().enumerate().skip(1);
        let mut places: Vec<u32> = self.nodes.iter().map(|node| *node as u32).collect();
        places.sort_unstable();
        places.iter().copied().eq(0..weights.len() as u32)
            && self.nodes.iter().all(|found| *found <= node(weights[place(*found)], *found as u32))
            && parents.into_iter().all(|(i, node)| self.nodes[(i - 1) / CHILDREN] <= *node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_the_smallest_weight_of_the_first_place() {
        for len in [1usize, 2, 4, 5, 6, 21, 22, 100] {
            let mut weights: Vec<f64> = (0..len).map(|i| ((i * 7919) % 13) as f64).collect();
            let mut heap = Heap::default();
            heap.build(weights.iter().copied()).unwrap();
            let mut state = 1usize;
            for _ in 0..2000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                weights[(state >> 33) % len] += ((state >> 50) % 3) as f64;
                assert!(heap.is_sound(&weights));
                let peeked = heap.peek(|place| weights[place]);
                let least = heap.least(|place| weights[place]);
                assert_eq!(peeked, weights[least]);
                let naive = (0..len).min_by(|a, b| weights[*a].total_cmp(&weights[*b])).unwrap();
                assert_eq!(least, naive);
                weights[least] += 1.0;
            }
        }
    }
}
