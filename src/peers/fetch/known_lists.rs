//! One copy of what many servers list alike.

use std::sync::{Arc, Weak};

use crate::discovery::ApiGroupDiscoveryList;

/// The lists that are in use, so that servers which list the same share one.
#[derive(Clone, Debug, Default)]
pub(in crate::peers) struct KnownLists {
    // Held for comparisons only; all readers run on the one thread of the control loops.
    #[allow(clippy::disallowed_types)]
    lists: Arc<std::sync::Mutex<Vec<Weak<ApiGroupDiscoveryList>>>>,
}

impl KnownLists {
    /// The list that is in use already and equal, else this one, which is from now on.
    #[allow(clippy::unwrap_used)] // Nothing panics while the lock is held.
    pub(super) fn share(&self, list: ApiGroupDiscoveryList) -> Arc<ApiGroupDiscoveryList> {
        let mut lists = self.lists.lock().unwrap();
        lists.retain(|known| known.strong_count() > 0);
        if let Some(known) = lists.iter().filter_map(Weak::upgrade).find(|known| **known == list) {
            return known;
        }
        let list = Arc::new(list);
        lists.push(Arc::downgrade(&list));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_one_as_long_as_somebody_uses_them() {
        let known = KnownLists::default();
        let list = ApiGroupDiscoveryList::default;
        let first = known.share(list());
        assert!(Arc::ptr_eq(&first, &known.share(list())));
        drop(first);
        known.share(list());
        assert_eq!(known.lists.lock().unwrap().len(), 1);
    }
}
