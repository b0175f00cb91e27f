//! Many orders into one: the relative-order merge that upstream applies to groups, versions and resources.
//!
//! Source: <https://github.com/kubernetes/apimachinery/blob/v0.36.3/pkg/util/sort/sort.go>

use std::collections::{BTreeMap, BTreeSet};

/// Merges lists of names into one list of every name, each once, that keeps the order of each list where possible.
///
/// * The first list that holds every name exactly once is the answer.
/// * Otherwise every name stands behind its direct predecessors of all lists; ties go to the smallest name.
/// * Where the lists contradict one another (a cycle), the answer is the plain lexicographic order.
///
/// The first and the last rule make the answer depend on the order of the lists: callers keep the order of server IDs.
#[must_use]
pub fn merge_preserving_relative_order<'a>(lists: &[Vec<&'a str>]) -> Vec<&'a str> {
    let mut graph = precedence(lists);
    if let Some(complete) = lists.iter().find(|list| list.len() == graph.len() && is_unique(list)) {
        return complete.clone();
    }
    let names: Vec<&str> = graph.keys().copied().collect();
    topological_sort(&mut graph).unwrap_or(names)
}

/// A name's direct successors, each once, and how many direct predecessors of it are still unsorted.
#[derive(Default)]
struct Node<'a> {
    successors: BTreeSet<&'a str>,
    predecessors: usize,
}

fn precedence<'a>(lists: &[Vec<&'a str>]) -> BTreeMap<&'a str, Node<'a>> {
    let mut graph: BTreeMap<&str, Node<'_>> = BTreeMap::new();
    for list in lists {
        for (index, name) in list.iter().copied().enumerate() {
            let node = graph.entry(name).or_default();
            if let Some(next) = list.get(index + 1).copied()
                && node.successors.insert(next)
            {
                graph.entry(next).or_default().predecessors += 1;
            }
        }
    }
    graph
}

fn is_unique(list: &[&str]) -> bool {
    let distinct: BTreeSet<&str> = list.iter().copied().collect();
    distinct.len() == list.len()
}

/// Takes the smallest name without an unsorted predecessor, again and again; `None` if a cycle is left over.
fn topological_sort<'a>(graph: &mut BTreeMap<&'a str, Node<'a>>) -> Option<Vec<&'a str>> {
    let total = graph.len();
    let mut ready: BTreeSet<&str> =
        graph.iter().filter(|(_, node)| node.predecessors == 0).map(|(name, _)| *name).collect();
    let mut sorted = Vec::with_capacity(total);
    while let Some(name) = ready.pop_first() {
        sorted.push(name);
        let successors = graph.get_mut(name).map(|node| std::mem::take(&mut node.successors)).unwrap_or_default();
        for successor in successors {
            if let Some(node) = graph.get_mut(successor) {
                node.predecessors -= 1;
                if node.predecessors == 0 {
                    ready.insert(successor);
                }
            }
        }
    }
    (sorted.len() == total).then_some(sorted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(lists: &[&[&str]], expected: &[&str]) {
        let lists: Vec<Vec<&str>> = lists.iter().map(|list| list.to_vec()).collect();
        assert_eq!(merge_preserving_relative_order(&lists), expected, "{lists:?}");
    }

    #[test]
    fn orders_as_upstream_orders() {
        check(&[], &[]);
        check(&[&[]], &[]);
        check(&[&["b", "a"]], &["b", "a"]);
        // The first complete list wins, even against a contradiction and whatever stands before it.
        check(&[&["a", "b", "c"], &["b", "c"]], &["a", "b", "c"]);
        check(&[&["c"], &["c", "b", "a"], &["a", "b", "c"]], &["c", "b", "a"]);
        // No complete list: ties go to the smallest name.
        check(&[&["a", "c"], &["b", "c"]], &["a", "b", "c"]);
        check(&[&["z", "m"], &["z", "b"]], &["z", "b", "m"]);
        // Contradiction without a complete list: lexicographic, also for names that no contradiction touches.
        check(&[&["z", "c", "b"], &["b", "c", "a"]], &["a", "b", "c", "z"]);
        // A name twice in a row precedes itself.
        check(&[&["z", "a", "a"]], &["a", "z"]);
    }

    proptest! {
        #[test]
        fn every_name_comes_out_once(lists in names(0..12)) {
            let lists = borrowed(&lists);
            let merged = merge_preserving_relative_order(&lists);
            let expected: BTreeSet<&str> = lists.iter().flatten().copied().collect();
            prop_assert!(is_unique(&merged));
            prop_assert_eq!(merged.into_iter().collect::<BTreeSet<_>>(), expected);
        }

        #[test]
        fn agreeing_lists_keep_their_order(picks in prop::collection::vec(prop::collection::btree_set(0usize..20, 0..20), 1..5),
                                           permutation in Just((0..20).map(|n| format!("n{n:02}")).collect::<Vec<_>>()).prop_shuffle()) {
            let lists: Vec<Vec<&str>> = picks.iter().map(|pick| pick.iter().map(|&i| permutation[i].as_str()).collect()).collect();
            let merged = merge_preserving_relative_order(&lists);
            for list in &lists {
                let kept: Vec<&str> = merged.iter().copied().filter(|name| list.contains(name)).collect();
                prop_assert_eq!(&kept, list);
            }
        }
    }

    fn names(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<String>>> {
        prop::collection::vec(prop::collection::vec("[a-e]", length), 0..4)
    }

    fn borrowed(lists: &[Vec<String>]) -> Vec<Vec<&str>> {
        lists.iter().map(|list| list.iter().map(String::as_str).collect()).collect()
    }
}
