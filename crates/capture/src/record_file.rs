//! Files of records that end with a whole record, also where the disk is full.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Buffered octets from which whole records are written.
const BUFFER: usize = 65_536;

/// A file of records, buffered. When it cannot be written any more, it is cut behind its last whole record, so that readers
/// accept it: an end of a record is everything that readers need.
///
/// **[`end_record`](Self::end_record) is called behind each record; [`flush`](Write::flush) at the end**, because dropping
/// ignores errors. After an error nothing more is written.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    path: PathBuf,
    /// Octets in the file, which end with a record.
    written: u64,
    buffer: Vec<u8>,
    /// Ends of records in the buffer.
    ends: Vec<usize>,
    failed: bool,
}

impl RecordFile {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            written: 0,
            buffer: Vec::with_capacity(BUFFER),
            ends: Vec::new(),
            failed: false,
        })
    }

    /// Ends a record, or a file header.
    ///
    /// # Errors
    /// The file cannot be written. The error names it.
    pub fn end_record(&mut self) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        self.ends.push(self.buffer.len());
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Cuts the file behind the last record of which all octets are among the first `octets` of the buffer.
    fn cut(&mut self, octets: usize, error: &io::Error) -> io::Error {
        let end = self.ends.iter().rfind(|end| **end <= octets).copied().unwrap_or(0);
        let whole = self.written + end as u64;
        self.failed = true;
        self.buffer = Vec::new();
        self.ends = Vec::new();
        // A pipe or a device has no length.
        let is_file = self.file.metadata().is_ok_and(|data| data.is_file());
        let path = self.path.display();
        let rest = match is_file.then(|| self.file.set_len(whole)) {
            Some(Ok(())) => format!("; the file ends after {whole} octets with a whole record"),
            Some(Err(_)) => "; the last record of the file is incomplete".to_owned(),
            None => String::new(),
        };
        io::Error::new(error.kind(), format!("cannot write {path}: {error}{rest}"))
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

impl Write for RecordFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if !self.failed {
            self.buffer.extend_from_slice(octets);
        }
        Ok(octets.len())
    }

    /// Writes all whole records.
    fn flush(&mut self) -> io::Result<()> {
        let Some(&end) = self.ends.last() else { return Ok(()) };
        let mut written = 0;
        while let Some(rest @ [_, ..]) = self.buffer.get(written..end) {
            match self.file.write(rest) {
                Ok(0) => return Err(self.cut(written, &io::ErrorKind::WriteZero.into())),
                Ok(octets) => written += octets,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.cut(written, &error)),
            }
        }
        self.written += end as u64;
        self.buffer.drain(..end);
        self.ends.clear();
        Ok(())
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{LinkType, Reader, Timestamp, Writer};

    const FOLDER: &str = "THINAIR_TEST_RECORD_FILE";
    const NAME: &str = "record_file::tests::a_file_on_a_full_disk_ends_with_a_whole_record";

    /// Writes records of 1,000 octets until an error, flushes after each `between`, and stores the error.
    fn fill(folder: &Path, between: usize) {
        let mut writer =
            Writer::new(RecordFile::create(&folder.join(between.to_string())).unwrap(), LinkType::RAW)
                .unwrap();
        writer.get_mut().end_record().unwrap();
        let error = (0..1_000).find_map(|number: usize| {
            let mut write = || {
                writer.write(Timestamp::from_nanos(number as u64), &[number as u8; 1_000])?;
                writer.get_mut().end_record()?;
                if number.is_multiple_of(between) { writer.flush() } else { Ok(()) }
            };
            write().err()
        });
        std::fs::write(folder.join(format!("{between}.error")), error.unwrap().to_string()).unwrap();
        // Nothing follows.
        writer.write(Timestamp::from_nanos(1), &[1; 1_000]).unwrap();
        writer.get_mut().end_record().unwrap();
        writer.flush().unwrap();
    }

    /// A limit of the file size (RLIMIT_FSIZE) stands for the disk: a part of the last write succeeds.
    #[test]
    fn a_file_on_a_full_disk_ends_with_a_whole_record() {
        const BETWEEN: [usize; 3] = [1, 7, 10_000];
        if let Some(folder) = std::env::var_os(FOLDER) {
            BETWEEN.iter().for_each(|between| fill(Path::new(&folder), *between));
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let limited = Command::new("sh")
            .args(["-c", "ulimit -f 200; trap '' XFSZ; exec \"$0\" --exact \"$1\""])
            .arg(std::env::current_exe().unwrap())
            .arg(NAME)
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stdout));
        for between in BETWEEN {
            let path = folder.path().join(between.to_string());
            let mut reader = Reader::new(File::open(&path).unwrap()).unwrap();
            let mut records = 0_usize;
            while let Some(record) = reader.next_record() {
                assert_eq!(record.unwrap().data, [records as u8; 1_000]);
                records += 1;
            }
            // 200 blocks of 512 or 1,024 octets.
            let limit = [102_400, 204_800].into_iter().any(|limit| records == (limit - 24) / 1_016);
            assert!(limit, "{records} records");
            let octets = std::fs::metadata(&path).unwrap().len();
            assert_eq!(octets, 24 + 1_016 * records as u64);
            let error = std::fs::read_to_string(folder.path().join(format!("{between}.error"))).unwrap();
            assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
            assert!(error.ends_with(&format!("after {octets} octets with a whole record")), "{error}");
        }
    }

    #[test]
    fn a_device_has_no_length() {
        let mut file = RecordFile::create(Path::new("/dev/full")).unwrap();
        file.write_all(b"record").unwrap();
        file.end_record().unwrap();
        let error = file.flush().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().ends_with("(os error 28)"), "{error}");
    }
}
