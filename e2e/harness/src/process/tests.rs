use std::net::{Ipv4Addr, TcpListener};

use super::*;

fn process(folder: &Path, script: &str, ready: Ready) -> Process {
    let records = Records::create(folder.join("pids")).unwrap();
    let spec = Spec {
        name: "stand-in".to_owned(),
        program: "sh".into(),
        arguments: ["-c", script].map(OsString::from).to_vec(),
        hostname: None,
        log: folder.join("log"),
        ready,
    };
    Process::new(spec, records)
}

/// A listener makes any process ready; a port that was freed never does.
fn ready() -> (TcpListener, Ready) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let std::net::SocketAddr::V4(address) = listener.local_addr().unwrap() else { unreachable!() };
    (listener, Ready::Listens(address))
}

fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn process_that_dies_before_it_is_ready_fails_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let (listener, never) = ready();
    drop(listener);
    let process = process(folder.path(), "echo the disk is full; exit 3", never);
    let error = process.start().await.unwrap_err().to_string();
    assert!(error.contains("the disk is full") && error.contains("exit status: 3"), "{error}");
}

#[tokio::test]
async fn stop_and_kill_end_the_whole_group_and_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, ready) = ready();
    let process = process(folder.path(), "sleep 600 & echo child $!; wait", ready);
    for end_by_kill in [false, true] {
        process.start().await.unwrap();
        eventually("the child is announced", || process.log_text().lines().count() == usize::from(end_by_kill) + 1)
            .await;
        let child: u32 = process.log_text().lines().last().unwrap().strip_prefix("child ").unwrap().parse().unwrap();
        assert!(folder.path().join("pids/stand-in").is_file());
        if end_by_kill {
            process.kill().await.unwrap()
        } else {
            process.stop().await.unwrap()
        }
        eventually("the child ends", || !is_running(child)).await;
        assert_eq!(process.pid(), None);
        assert!(!folder.path().join("pids/stand-in").exists());
    }
}

#[tokio::test]
async fn process_ends_with_its_value() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, ready) = ready();
    let process = process(folder.path(), "exec sleep 600", ready);
    process.start().await.unwrap();
    let pid = process.pid().unwrap();
    assert!(process.start().await.is_err(), "a second start of the same process");
    drop(process);
    assert!(!is_running(pid));
}

#[tokio::test]
async fn hostname_is_the_process_own() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, ready) = ready();
    let mut process = process(folder.path(), "hostname; exec sleep 600", ready);
    process.spec.hostname = Some("node-z".to_owned());
    process.start().await.unwrap();
    eventually("the hostname is said", || process.log_text() == "node-z\n").await;
}

#[tokio::test]
async fn recorded_process_is_ended_and_a_reused_id_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, ready) = ready();
    let process = process(folder.path(), "exec sleep 600", ready);
    process.start().await.unwrap();
    let pid = process.pid().unwrap();
    let pids = folder.path().join("pids");
    std::fs::write(pids.join("other"), format!("{pid} 1\n")).unwrap();
    std::fs::rename(pids.join("stand-in"), folder.path().join("kept")).unwrap();

    assert!(!is_any_recorded_alive(&pids));
    assert!(end_recorded(&pids).await.unwrap().is_empty());
    assert!(is_running(pid), "a record with another start time ended a process");

    std::fs::rename(folder.path().join("kept"), pids.join("stand-in")).unwrap();
    assert!(is_any_recorded_alive(&pids));
    assert_eq!(end_recorded(&pids).await.unwrap(), ["stand-in"]);
    assert!(!is_running(pid));
}

#[tokio::test]
async fn warden_ends_what_its_master_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (_listener, ready) = ready();
    let process = process(folder.path(), "exec sleep 600", ready);
    process.start().await.unwrap();
    let pid = process.pid().unwrap();
    let throw_away = folder.path().join("data");
    std::fs::create_dir(&throw_away).unwrap();
    let mut warden = Warden::start(&process.records, Some(&throw_away)).unwrap();
    // What the end of this program does: the pipe closes without a word.
    drop(warden.0.stdin.take());
    warden.0.wait().unwrap();
    eventually("the process ends", || !is_running(pid)).await;
    assert!(!throw_away.exists());

    process.start().await.unwrap();
    let mut warden = Warden::start(&process.records, None).unwrap();
    warden.dismiss();
    assert!(is_running(process.pid().unwrap()), "a dismissed warden ended a process");
}
