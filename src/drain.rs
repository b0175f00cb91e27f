//! One trigger, many watchers: how every task learns that it is time to finish.

use tokio::sync::watch;

/// Starts the drain when [`Trigger::start`] is called or the trigger is dropped.
#[derive(Debug)]
pub struct Trigger(watch::Sender<bool>);

/// Held by whatever has to finish; cheap to clone.
#[derive(Clone, Debug)]
pub struct Watcher(watch::Receiver<bool>);

/// Sees whether the drain has started and is not waited for.
#[derive(Clone, Debug)]
pub struct Observer(watch::Sender<bool>);

/// Makes a trigger and its first watcher.
#[must_use]
pub fn channel() -> (Trigger, Watcher) {
    let (sender, receiver) = watch::channel(false);
    (Trigger(sender), Watcher(receiver))
}

impl Trigger {
    /// Tells every watcher to finish.
    pub fn start(&self) {
        self.0.send_replace(true);
    }

    /// Makes an observer.
    #[must_use]
    pub fn observer(&self) -> Observer {
        Observer(self.0.clone())
    }

    /// Waits until every watcher is gone.
    pub async fn drained(&self) {
        self.0.closed().await;
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        self.start();
    }
}

impl Observer {
    /// Whether the drain has started.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.0.borrow()
    }
}

impl Watcher {
    /// Waits until the drain starts.
    pub async fn draining(&mut self) {
        // An error would mean that nobody is left to start it, which is the same.
        let _ = self.0.wait_for(|started| *started).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn observers_are_not_waited_for_and_a_dropped_trigger_starts_the_drain() {
        let (trigger, watcher) = channel();
        let observer = trigger.observer();
        drop(watcher);
        trigger.drained().await;
        assert!(!observer.is_draining());
        drop(trigger);
        assert!(observer.is_draining());
    }

    #[tokio::test]
    async fn trigger_waits_for_every_watcher() {
        let (trigger, mut watcher) = channel();
        let task = tokio::spawn(async move { watcher.draining().await });
        trigger.start();
        trigger.drained().await;
        task.await.unwrap();
    }
}
