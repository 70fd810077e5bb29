//! Many worlds on several threads, with the same results on any number of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `run` for every item, on up to `threads` threads, and returns the answers in the order of the items. Each world
/// lives on one thread and shares nothing, so the answers do not depend on the number of threads.
pub fn sweep<Item: Sync, Answer: Send>(
    threads: usize,
    items: &[Item],
    run: impl Fn(&Item) -> Answer + Sync,
) -> Vec<Answer> {
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<(usize, Answer)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let answer = run(item);
                    // A thread that panicked leaves nothing half done here; the panic itself goes on at the join.
                    answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, answer));
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
