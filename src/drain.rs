//! One trigger, many watchers: how every task learns that it is time to finish.

use tokio::sync::watch;

/// Starts the drain when [`Trigger::start`] is called or the trigger is dropped.
#[derive(Debug)]
pub struct Trigger(watch::Sender<bool>);

/// Held by whatever has to finish; cheap to clone.
#[derive(Clone, Debug)]
pub struct Watcher(watch::Receiver<bool>);

/// Sees whether the drain has started, without being waited for.
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

    /// Waits until every watcher is gone.
    pub async fn drained(&self) {
        self.0.closed().await;
    }

    /// For whoever has to say that the drain goes on until it is over.
    #[must_use]
    pub fn observer(&self) -> Observer {
        Observer(self.0.clone())
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
        // Dropping the trigger starts it, so there is no other end to wait for.
        let _ = self.0.wait_for(|started| *started).await;
    }

    /// Whether it has started.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.0.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn trigger_waits_for_every_watcher() {
        let (trigger, mut watcher) = channel();
        let task = tokio::spawn(async move { watcher.draining().await });
        trigger.start();
        trigger.drained().await;
        task.await.unwrap();
    }

    #[tokio::test]
    async fn observer_is_not_waited_for_and_keeps_no_watcher_waiting() {
        let (trigger, mut watcher) = channel();
        let observer = trigger.observer();
        assert!(!observer.is_draining());
        drop(trigger);
        assert!(observer.is_draining());
        watcher.draining().await;
        let (trigger, watcher) = channel();
        let _observer = trigger.observer();
        drop(watcher);
        trigger.drained().await;
    }
}
