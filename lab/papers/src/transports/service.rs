//! Programs of each service: a server in the foreground with its own configuration, and a client for one object.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cell::{SIZES, TransportService};
use super::header_blocks::BROWSER;
use super::http3;
use crate::paper::PaperError;

/// Scripts around the npm package.
const SPDY_SERVER: &str = include_str!("spdy_server.js");
const SPDY_CLIENT: &str = include_str!("spdy_client.js");

/// Environment of the programs.
#[derive(Debug)]
pub(super) struct ServicePlace {
    /// Path of the command `thinair`.
    pub(super) program: PathBuf,
    /// Folder of the servers' files, with the objects, named by their octets, in `objects`.
    pub(super) folder: PathBuf,
    /// Address of the server.
    pub(super) server: IpAddr,
}

/// Object of this many octets: text, which every client accepts, and which occurs in no header.
pub(super) fn object(size: usize) -> Vec<u8> {
    object_named(size, size)
}

/// Object of this many octets with another name, and so with other text.
pub(super) fn object_named(name: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| b'!' + ((at * 7 + at / 90 + name) % 90) as u8).collect()
}

/// Names of objects of that size that are fetched over one connection.
pub(super) const fn several(size: usize) -> [usize; 3] {
    [size, size + 1, size + 2]
}

impl ServicePlace {
    /// Writes objects, configurations and scripts.
    pub(super) fn prepare(&self) -> Result<(), PaperError> {
        let objects = self.objects();
        fs::create_dir_all(&objects)?;
        for size in SIZES {
            for name in several(size) {
                fs::write(objects.join(name.to_string()), object_named(name, size))?;
            }
        }
        let (folder, objects, server) = (self.folder.display(), objects.display(), self.server);
        let configurations = [
            ("spdy_server.js", SPDY_SERVER.to_owned()),
            ("spdy_client.js", SPDY_CLIENT.to_owned()),
            (
                "apache.conf",
                format!(
                    "ServerRoot /usr/lib/apache2\n\
                    LoadModule mpm_event_module modules/mod_mpm_event.so\n\
                    LoadModule authz_core_module modules/mod_authz_core.so\n\
                    LoadModule mime_module modules/mod_mime.so\n\
                    TypesConfig /etc/mime.types\n\
                    ServerName thing\n\
                    Listen {}\n\
                    PidFile {folder}/apache.pid\n\
                    DefaultRuntimeDir {folder}\n\
                    DocumentRoot {objects}\n\
                    ErrorLog {folder}/apache.log\n\
                    StartServers 1\n\
                    ServerLimit 1\n\
                    ThreadsPerChild 25\n\
                    MaxRequestWorkers 25\n",
                    self.address(TransportService::Http)
                ),
            ),
            (
                "nginx.conf",
                format!(
                    "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;\n\
                    events {{ worker_connections 16; }}\n\
                    http {{ access_log off; default_type text/plain;\n\
                    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};\n\
                    uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
                    server {{ listen {}; root {objects}; }} }}\n",
                    self.address(TransportService::Nginx)
                ),
            ),
            (
                "mosquitto.conf",
                format!("listener {} {server}\nallow_anonymous true\n", TransportService::Mqtt.port()),
            ),
        ];
        for (name, text) in configurations {
            fs::write(self.folder.join(name), text)?;
        }
        Ok(())
    }

    fn objects(&self) -> PathBuf {
        self.folder.join("objects")
    }

    /// Address at which a service listens.
    pub(super) fn address(&self, service: TransportService) -> SocketAddr {
        SocketAddr::new(self.server, service.port())
    }

    fn object(&self, size: usize) -> PathBuf {
        self.objects().join(size.to_string())
    }

    fn url(&self, scheme: &str, service: TransportService, size: usize) -> String {
        format!("{scheme}://{}/{size}", self.address(service))
    }
}

impl TransportService {
    /// Port of its server.
    pub(super) const fn port(self) -> u16 {
        match self {
            Self::Coap => 5_683,
            Self::IotHttpHeld => 8_087,
            Self::CoapOurs => 5_685,
            Self::CoapTcp => 5_687,
            Self::Http => 8_080,
            Self::IotHttp => 8_081,
            Self::IotSpdy => 8_082,
            Self::Spdy => 8_083,
            Self::HttpOurs => 8_084,
            Self::Nginx => 8_085,
            Self::Http2 => 8_086,
            Self::Mqtt => 1_883,
            Self::Http3 => 8_088,
        }
    }

    /// Name for `thinair-lab fetch` and `thinair-lab serve`; `None` for services of others.
    const fn ours(self) -> Option<&'static str> {
        match self {
            Self::IotHttp | Self::IotHttpHeld => Some("iot-http"),
            Self::IotSpdy => Some("iot-spdy"),
            Self::CoapOurs => Some("coap"),
            Self::CoapTcp => Some("coap-tcp"),
            Self::HttpOurs => Some("http"),
            Self::Http3 => Some("http3"),
            Self::Coap | Self::Http | Self::Spdy | Self::Nginx | Self::Http2 | Self::Mqtt => None,
        }
    }

    /// Reason that it cannot run; `None` if it can.
    pub(super) fn missing(self, program: &Path) -> Option<String> {
        let has = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        if let Some(name) = self.ours() {
            let help = Command::new(program).args(["fetch", "--help"]).output();
            let knows = help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains(name));
            if !knows {
                return Some(format!("this `thinair` does not know {name}"));
            }
            return if self == Self::Http3 { http3::missing(program) } else { None };
        }
        let needed: &[(&str, &str)] = match self {
            Self::Coap => &[("coap-client-notls", "libcoap3-bin"), ("coap-server-notls", "libcoap3-bin")],
            Self::Http => &[("curl", "curl"), ("apache2", "apache2")],
            Self::Nginx => &[("curl", "curl"), ("nginx", "nginx-light")],
            Self::Http2 => &[("nghttp", "nghttp2-client"), ("nghttpd", "nghttp2-server")],
            Self::Mqtt => &[("mosquitto", "mosquitto"), ("mosquitto_pub", "mosquitto-clients")],
            _ => &[],
        };
        let absent = needed.iter().find(|(program, _)| has(Command::new(program).arg("-h")).is_err());
        if let Some((program, package)) = absent {
            return Some(format!("there is no {program} (Debian: {package})"));
        }
        let loads =
            || has(Command::new("node").args(["-e", "require('spdy')"])).is_ok_and(|status| status.success());
        (self == Self::Spdy && !loads()).then(|| {
            "node does not find the package spdy (`npm install --prefix DIR spdy@4.0.2`, and NODE_PATH=DIR/node_modules)"
                .to_owned()
        })
    }

    /// Its server, in the foreground.
    pub(super) fn server(self, place: &ServicePlace) -> Command {
        let (folder, server, port) = (&place.folder, place.server.to_string(), self.port().to_string());
        if let Some(name) = self.ours() {
            let mut ours = Command::new(&place.program);
            ours.args(["serve", "--service", name, "--bind", &place.address(self).to_string()])
                .arg(place.objects());
            if self == Self::Http3 {
                ours.arg("--save-certificate").arg(http3::certificate(place));
            }
            return ours;
        }
        let mut command;
        match self {
            Self::Coap => {
                command = Command::new("coap-server-notls");
                // Maximum number of objects that may be put there.
                command.args(["-A", &server, "-p", &port, "-d", &SIZES.len().to_string()]);
            }
            Self::Http => {
                command = Command::new("apache2");
                command.args(["-D", "FOREGROUND", "-f"]).arg(folder.join("apache.conf"));
            }
            Self::Nginx => {
                command = Command::new("nginx");
                command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
            }
            Self::Http2 => {
                command = Command::new("nghttpd");
                command.args(["--no-tls", "-a", &server, "-d"]).arg(place.objects()).arg(&port);
            }
            Self::Mqtt => {
                command = Command::new("mosquitto");
                command.arg("-c").arg(folder.join("mosquitto.conf"));
            }
            _ => {
                command = Command::new("node");
                command.arg("--no-deprecation").arg(folder.join("spdy_server.js"));
                command.args([&server, &port]).arg(place.objects());
            }
        }
        command
    }

    /// Client that fetches the object of that size once, or sends it.
    pub(super) fn client(self, place: &ServicePlace, size: usize) -> Command {
        let (server, port) = (place.server.to_string(), self.port().to_string());
        let url = |scheme| place.url(scheme, self, size);
        let mut command;
        if let Some(name) = self.ours() {
            let scheme = match self {
                Self::CoapOurs => "coap",
                Self::CoapTcp => "coap+tcp",
                Self::Http3 => "https",
                _ => "http",
            };
            command = Command::new(&place.program);
            command.args(["fetch", "--service", name, &url(scheme)]);
            if self == Self::IotHttp {
                command.arg("--quick-ack");
            }
            if self == Self::Http3 {
                command.arg("--json").arg("--trust-certificate").arg(http3::certificate(place));
            }
        } else {
            match self {
                Self::Coap => {
                    command = Command::new("coap-client-notls");
                    // From one port, so that all exchanges belong to one flow.
                    command.args(["-B", "10", "-p", "40000", &url("coap")]);
                }
                Self::Http => {
                    command = Command::new("curl");
                    command.args(["--silent", "--header", "Connection: keep-alive"]);
                    for (name, value) in BROWSER {
                        command.arg("--header").arg(format!("{name}: {value}"));
                    }
                    command.arg(url("http"));
                }
                Self::Nginx => {
                    command = Command::new("curl");
                    command.args(["--silent", &url("http")]);
                }
                Self::Http2 => {
                    command = Command::new("nghttp");
                    command.arg(url("http"));
                }
                Self::Mqtt => {
                    command = Command::new("mosquitto_pub");
                    command.args([
                        "-h",
                        &server,
                        "-p",
                        &port,
                        "-i",
                        "c",
                        "-t",
                        &size.to_string(),
                        "-q",
                        "1",
                        "-f",
                    ]);
                    command.arg(place.object(size));
                }
                _ => {
                    command = Command::new("node");
                    command.arg("--no-deprecation").arg(place.folder.join("spdy_client.js"));
                    command.args([server, port, format!("/{size}")]);
                }
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Client that fetches [several] objects over one connection, in sequence; `None` if there is no program for it.
    pub(super) fn keeping_client(self, place: &ServicePlace, size: usize) -> Option<Command> {
        let mut command = self.client(place, size);
        let [_, more @ ..] = several(size);
        match self {
            Self::Nginx => command.args(more.map(|name| place.url("http", self, name))),
            Self::Spdy => command.args(more.map(|name| format!("/{name}"))),
            _ => return None,
        };
        Some(command)
    }

    /// Command that must run once before the first exchange, to create the object: libcoap's server has none of its
    /// own.
    pub(super) fn provision(self, place: &ServicePlace, size: usize) -> Option<Command> {
        (self == Self::Coap).then(|| {
            let mut put = Command::new("coap-client-notls");
            put.args(["-B", "10", "-m", "put", "-f"])
                .arg(place.object(size))
                .arg(place.url("coap", self, size));
            put.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            put
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_text_of_their_size() {
        for size in SIZES {
            let object = object(size);
            assert_eq!(object.len(), size);
            assert!(object.iter().all(u8::is_ascii_graphic));
        }
    }
}
