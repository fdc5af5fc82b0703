//! C programs for the tests of the C libraries: compiled, linked and run.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The C compiler: that of the environment variable CC, or `cc`.
fn compiler() -> String {
    env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

/// Folder with a shared library under the name that programs load, for one test.
pub struct Library {
    folder: PathBuf,
    file: PathBuf,
    include: PathBuf,
    soname: &'static str,
}

impl Library {
    /// The library that Cargo has built as `file`, for the C programs of `test`; `None`, and a line `skipped`, without
    /// a C compiler.
    pub fn for_test(file: &str, soname: &'static str, test: &str) -> Option<Self> {
        if Command::new(compiler()).arg("--version").output().is_err() {
            println!("skipped: there is no C compiler");
            return None;
        }
        let built = env::current_exe().unwrap().parent().unwrap().join(file);
        let folder = env::temp_dir().join(format!("thinair-c-{}-{file}-{test}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(soname);
        fs::copy(&built, &file).unwrap();
        Some(Self { folder, file, include: Path::new(env!("CARGO_MANIFEST_DIR")).join("include"), soname })
    }

    /// Compiles a C file with every warning as an error, as C11 or as C++, and returns the program.
    pub fn compile(&self, source: &Path) -> PathBuf {
        let program = self.folder.join(source.file_stem().unwrap());
        let standard: &[&str] = match source.extension().unwrap().to_str() {
            Some("c") => &["-std=c11"],
            _ => &["-std=c++17"],
        };
        let output = Command::new(compiler())
            .args(standard)
            .args(["-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
            .arg(&self.include)
            .arg("-I")
            .arg(root().join("bindings/tests"))
            .arg(source)
            .arg(&self.file)
            .args(["-o"])
            .arg(&program)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    }

    /// Compiles C text as a file of that name.
    pub fn compile_text(&self, name: &str, text: &str) -> PathBuf {
        let source = self.folder.join(name);
        fs::write(&source, text).unwrap();
        self.compile(&source)
    }

    /// Runs a program, which has to succeed, and returns what it has printed.
    pub fn run(&self, program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let output = Command::new(program)
            .args(arguments)
            .envs(variables.iter().copied())
            .env("LD_LIBRARY_PATH", &self.folder)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {}\n{printed}{complaint}", program.display(), output.status);
        printed
    }

    /// Symbols that the library exports; `None`, and a line `skipped`, without `nm`.
    pub fn symbols(&self) -> Option<BTreeSet<String>> {
        let Ok(output) = Command::new("nm").args(["-D", "--defined-only"]).arg(&self.file).output() else {
            println!("skipped: there is no nm");
            return None;
        };
        assert!(output.status.success());
        let lines = String::from_utf8(output.stdout).unwrap();
        Some(lines.lines().map(|line| line.split_whitespace().next_back().unwrap().to_owned()).collect())
    }

    /// Functions that the headers in `folder` declare, by their prefix.
    pub fn declared(&self, folder: &str, prefix: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(self.include.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Ok(text) = fs::read_to_string(&path) else { continue };
            // A declaration: a name at the start of a line or behind a type, its parameters, and a semicolon.
            let code: String = text.lines().filter(|line| !line.trim_start().starts_with('*')).collect();
            for (at, _) in code.match_indices('(') {
                let name: String = code[..at]
                    .chars()
                    .rev()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .collect();
                let before = code[..at - name.len()].chars().next_back();
                let is_declaration = before.is_some_and(|c| c == ' ' || c == '*');
                if is_declaration && name.starts_with(prefix) {
                    names.insert(name);
                }
            }
        }
        names
    }

    /// The captures of the repository.
    pub fn captures() -> Vec<String> {
        let mut captures: Vec<_> = fs::read_dir(root().join("captures"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "pcap"))
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        captures.sort();
        captures
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
