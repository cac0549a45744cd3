//! Connections by token. A token is not reused within almost 2³² reuses of its slot, so an event or an answer for a closed
//! connection is ignored.

/// A table of `T` by token.
#[derive(Debug)]
pub struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value and returns its token.
    pub fn insert(&mut self, value: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// The value of a token, while it is kept.
    pub fn get(&mut self, token: u64) -> Option<&mut T> {
        let slot = self.slots.get_mut(token as u32 as usize)?;
        if u64::from(slot.generation) == token >> 32 { slot.value.as_mut() } else { None }
    }

    /// Removes a value.
    pub fn remove(&mut self, token: u64) -> Option<T> {
        let value = self.get(token).is_some().then(|| &mut self.slots[token as u32 as usize])?;
        // The highest generation is never reached by a token in use: it belongs to the worker's own descriptors.
        value.generation = (value.generation + 1) % (u32::MAX - 1);
        self.free.push(token as u32);
        value.value.take()
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_token_outlives_no_value() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        let second = slots.insert('b');
        assert_eq!(slots.remove(first), Some('a'));
        let third = slots.insert('c');
        assert_ne!(first, third);
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get(second).copied(), Some('b'));
        assert_eq!(slots.get(third).copied(), Some('c'));
        assert_eq!(slots.get(u64::MAX), None);
    }
}
