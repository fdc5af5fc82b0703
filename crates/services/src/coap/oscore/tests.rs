#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use thinair_coap::{Code, Options};

use super::*;

/// A context in a folder that is removed after the test.
fn pair() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (client, server) = (folder.path().join("client"), folder.path().join("server"));
    create_pair(&client, &server, b"c").unwrap();
    (folder, client, server)
}

fn next_to_send(folder: &Path) -> u64 {
    parsed::<Sequence>(&folder.join("sequence.json")).unwrap().unwrap().next_to_send
}

/// Returns the Partial IVs of this many requests.
fn numbers(context: &mut Context, count: usize) -> Vec<Vec<u8>> {
    let ask = |_| context.protect_request(Code::GET, &Options::default(), &[]);
    let asked = (0..count).map_while(ask);
    let value = |options: &thinair_coap::OptionList| {
        options.as_options().first(thinair_coap::number::OSCORE).unwrap().to_vec()
    };
    asked.map(|(request, _)| value(&request.options)).collect()
}

#[test]
fn both_folders_have_one_context() {
    let (_folder, client, server) = pair();
    let (mut client, mut server) = (open(&client, false).unwrap(), open(&server, false).unwrap());
    let (request, _) = client.protect_request(Code::GET, &Options::default(), b"payload").unwrap();
    let (request, _) = server.unprotect_request(&request.options.as_options(), &request.payload).unwrap();
    assert_eq!((request.code, request.payload()), (Code::GET, &b"payload"[..]));
}

#[test]
fn no_number_is_used_twice_whether_a_process_ends_or_is_killed() {
    let (_folder, client, _) = pair();
    let mut used = BTreeSet::new();
    for round in 0..40 {
        let mut context = open(&client, false).unwrap();
        for number in numbers(&mut context, round * 7 % 50) {
            assert!(used.insert(number));
        }
        if round % 2 == 0 {
            // As if killed: nothing is released, but for the lock.
            let lock = File::open(client.join("lock")).unwrap();
            std::mem::forget(context);
            fs::remove_file(client.join("lock")).unwrap();
            drop(lock);
        }
    }
    assert!(used.len() > 800, "{}", used.len());
}

#[test]
fn a_process_that_ends_returns_what_it_has_not_used() {
    let (_folder, client, _) = pair();
    numbers(&mut open(&client, false).unwrap(), 3);
    assert_eq!(next_to_send(&client), 3);
    let mut context = open(&client, false).unwrap();
    assert_eq!(next_to_send(&client), 3 + STEP);
    numbers(&mut context, 20);
    assert_eq!(next_to_send(&client), 3 + 3 * STEP);
}

#[test]
fn one_process_at_a_time_uses_a_folder() {
    let (_folder, client, _) = pair();
    let first = open(&client, false).unwrap();
    assert!(matches!(open(&client, false), Err(FolderError::Locked(_))));
    drop(first);
    open(&client, false).unwrap();
}

#[test]
fn a_copied_folder_is_not_used_unless_it_was_moved() {
    let (folder, client, _) = pair();
    numbers(&mut open(&client, false).unwrap(), 3);
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for file in ["settings.json", "sequence.json", "thinair.json"] {
        fs::copy(client.join(file), copy.join(file)).unwrap();
    }
    assert!(matches!(open(&copy, false), Err(FolderError::Copied(_))));
    drop(open(&copy, true).unwrap());
    assert_eq!(next_to_send(&copy), 3 + MOVED);
    // Once accepted, it is as any other; and another name is no copy.
    let renamed = folder.path().join("renamed");
    fs::rename(&copy, &renamed).unwrap();
    drop(open(&renamed, false).unwrap());
    assert_eq!(next_to_send(&renamed), 3 + MOVED);
}

#[test]
fn a_folder_without_its_numbers_is_not_used() {
    let (_folder, client, _) = pair();
    drop(open(&client, false).unwrap());
    fs::remove_file(client.join("sequence.json")).unwrap();
    assert!(matches!(open(&client, false), Err(FolderError::Lost(_))));
    assert!(matches!(open(&client, true), Err(FolderError::Lost(_))));
}

#[test]
fn nothing_is_sent_when_numbers_cannot_be_stored() {
    let (_folder, client, _) = pair();
    let mut context = open(&client, false).unwrap();
    // The new file cannot be made, also by root, as on a full disk.
    fs::create_dir(client.join("sequence.json.new")).unwrap();
    assert_eq!(numbers(&mut context, 100).len() as u64, STEP);
    fs::remove_dir(client.join("sequence.json.new")).unwrap();
    assert_eq!(numbers(&mut context, 100).len(), 100);
}

#[test]
fn a_server_that_restarts_does_not_know_what_it_has_received() {
    let (_folder, _, server) = pair();
    let first = open(&server, false).unwrap();
    assert!(!first.is_unsynchronized());
    // Even if it has sent nothing of its own.
    drop(first);
    assert!(open(&server, false).unwrap().is_unsynchronized());
}

#[test]
fn settings_of_aiocoap_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("secret.json", r#"{"secret_ascii": "a secret of both"}"#);
    write(
        "settings.json",
        r#"{"sender-id_hex": "", "recipient-id_ascii": "s", "id-context_hex": "37cb", "window": 32, "algorithm": "AES-CCM-16-64-128"}"#,
    );
    // A window that aiocoap does not know, behind a clean end.
    write("sequence.json", r#"{"next-to-send": 70, "received": {"index": null, "bitfield": null}}"#);
    let mut context = open(folder.path(), false).unwrap();
    assert_eq!((context.sender_id(), context.recipient_id()), (&b""[..], &b"s"[..]));
    assert_eq!(context.id_context(), Some(&b"\x37\xcb"[..]));
    assert!(context.is_unsynchronized());
    assert_eq!(numbers(&mut context, 1), [b"\x19\x46\x02\x37\xcb"]);
    drop(context);
    for (text, reason) in [
        (r#"{"sender-id_hex": "0", "recipient-id_hex": ""}"#, "sender-id_hex: expected pairs"),
        (r#"{"sender-id_hex": "00"}"#, "recipient-id_hex is missing"),
        (
            r#"{"secret_hex": "00", "sender-id_hex": "00", "recipient-id_hex": ""}"#,
            "several values of secret",
        ),
        (r#"{"algorithm": "A128GCM"}"#, "A128GCM is not supported"),
        ("{\n\"secret_hex\": 7}", "line 2"),
    ] {
        write("settings.json", text);
        let why = open(folder.path(), false).unwrap_err().to_string();
        assert!(why.contains(reason), "{why}");
    }
}

#[test]
fn a_context_is_never_overwritten_and_only_its_user_reads_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, client, server) = pair();
    assert!(create_pair(&client, &server, b"c").is_err());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&client), mode(&client.join("settings.json"))), (0o700, 0o600));
    assert_eq!(folders(folder.path()).unwrap(), [client.clone(), server]);
    assert_eq!(folders(&client).unwrap(), [client]);
}
