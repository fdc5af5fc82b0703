//! Transmission of a request on Linux, and output of its response.

use std::process::ExitCode;
use std::time::Duration;

use thinair_coap::oscore::ContextId;
use thinair_coap::uri::Scheme;
use thinair_coap::{CallError, Code, Received, Request};
use thinair_dtls::Failure;
use thinair_os::Signals;
use thinair_os::clock::now;
use thinair_services::coap::client::{
    AddressError, Client, ClientError, ClientTask, Continuation, Ending, GroupTask, TaskOutcome,
    TaskProgress, TaskReport, ask_group,
};
use thinair_services::coap::{edhoc::Identity, oscore, psk};
use thinair_services::wait::{Wait, Woken};
use thinair_wire::time::Instant;

use super::super::output::{self, ResponseOutput};
use super::super::{discover, names};
use super::agreement::Agreement;
use super::{Ask, Repetition, RequestArguments};
use crate::progress::{self, ProgressBar};
use crate::usage::Usage;

pub(super) fn run_one(asked: &Ask<'_>) -> anyhow::Result<ExitCode> {
    if let Some(leisure) = asked.arguments.options.group {
        return run_group(asked, leisure);
    }
    Series::open(asked)?.run(asked)
}

/// Sends all requests in this order, and repeats them.
pub(super) fn run_all(mut all: Vec<Ask<'_>>, repetition: &Repetition) -> anyhow::Result<ExitCode> {
    let rounds = repetition.count.unwrap_or(1);
    let in_series = all.len() > 1 || rounds > 1;
    all.iter_mut().for_each(|asked| asked.in_series = in_series);
    let (Some(first), true) = (all.first(), in_series) else {
        return all.first().map_or(Ok(ExitCode::SUCCESS), run_one);
    };
    if first.arguments.options.group.is_some() {
        return Err(Usage::error("--group is for one request"));
    }
    if first.arguments.options.output.is_some() && all.len() > 1 {
        return Err(Usage::error("--output would write the payloads of several resources to one file"));
    }
    let mut series = Series::open(first)?;
    let mut status = ExitCode::SUCCESS;
    for round in 0..rounds {
        let next = now() + repetition.every.unwrap_or_default();
        for asked in &all {
            let one = series.run(asked)?;
            if one != ExitCode::SUCCESS {
                status = one;
            }
            if series.is_over {
                return Ok(status);
            }
        }
        if round + 1 < rounds {
            series.wait(next)?;
        }
    }
    Ok(status)
}

/// Requests one after the other, from one client.
struct Series {
    client: Client,
    context: Option<ContextId>,
    agreement: Option<Agreement>,
    signals: Signals,
    /// True once nobody reads the output.
    is_over: bool,
}

impl Series {
    /// Creates the client. From here on, waiting includes interruption signals.
    fn open(asked: &Ask<'_>) -> anyhow::Result<Self> {
        // Invalid options are reported first.
        request(asked)?;
        let signals = Signals::take()?;
        let options = &asked.arguments.options;
        let mut client = Client::new(options.config())?;
        let context = match &options.oscore {
            Some(folder) => {
                // An error is logged where sequence numbers cannot be stored.
                crate::log::to_stderr("error");
                Some(client.add_context(oscore::open(folder, options.moved)?)?)
            }
            None => None,
        };
        if let Some(file) = &options.psk_file {
            client.set_psk(psk::read_one(file)?, options.handshake_timeout());
        }
        let identity = options.edhoc.as_deref().map(Identity::read).transpose()?;
        Ok(Self { client, context, agreement: identity.map(Agreement::new), signals, is_over: false })
    }

    fn run(&mut self, asked: &Ask<'_>) -> anyhow::Result<ExitCode> {
        let mut output = ResponseOutput::new(asked);
        let mut failure = None;
        let outcome = self.exchange(asked, &mut |message, report| {
            output.show(message, report).unwrap_or_else(|error| {
                failure = Some(error);
                Continuation::Stop
            })
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        match &outcome.result {
            Ok(Ending::Response(response)) => {
                self.is_over = output.show(response, &outcome.report)? == Continuation::Stop;
                output.finish(&outcome.report);
                if !response.is_success() {
                    print_refusal(response, asked);
                    return Ok(ExitCode::FAILURE);
                }
                if asked.observe.is_some() {
                    eprintln!(
                        "thinair: {}",
                        match output.shown {
                            1 =>
                                "the server does not let this resource be observed: that was its only answer",
                            _ => "the server has ended the observation",
                        }
                    );
                    return Ok(ExitCode::FAILURE);
                }
                Ok(ExitCode::SUCCESS)
            }
            Ok(Ending::Stopped | Ending::Interrupted) => {
                output.finish(&outcome.report);
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                output.failed(error, &outcome.report)?;
                let text = format!("{error}{}", advice(error, asked));
                // The other requests of a series may be answered.
                if asked.in_series && !matches!(error, ClientError::Interrupted) {
                    eprintln!("thinair: {}: {text}", asked.arguments.uri);
                    return Ok(ExitCode::FAILURE);
                }
                Err(anyhow::anyhow!(text))
            }
        }
    }

    /// Waits until a point in time.
    fn wait(&self, until: Instant) -> anyhow::Result<()> {
        let mut waiting = Wait::new(Some(&self.signals), None)?;
        while now() < until {
            if waiting.wait(Some(until))? == Woken::Interrupted {
                return Err(ClientError::Interrupted.into());
            }
        }
        Ok(())
    }

    /// Sends the request and waits for the response, with a progress bar on terminals.
    fn exchange(
        &mut self,
        asked: &Ask<'_>,
        show: &mut dyn FnMut(&Received<'_>, &TaskReport) -> Continuation,
    ) -> anyhow::Result<TaskOutcome> {
        let (arguments, options) = (asked.arguments, &asked.arguments.options);
        let request = request(asked)?;
        let (count, observe_for) = asked.observe.unwrap_or_default();
        let task = ClientTask {
            connect_timeout: options.connect_timeout,
            limit: options.timeout,
            observe_for,
            signals: Some(&self.signals),
            ..ClientTask::new(&arguments.uri, &request)
        };
        let context = match &mut self.agreement {
            Some(agreement) => Some(agreement.context(&mut self.client, &task, options.timing)?),
            None => self.context,
        };
        let task = ClientTask { context, ..task };
        let mut bar = None;
        let mut notifications = 0;
        let outcome = self.client.ask(&task, &mut |event| match event {
            TaskProgress::Progress { sent, received, total } => {
                show_progress(&mut bar, asked.payload.len(), sent, received, total);
                Continuation::Go
            }
            TaskProgress::Notification(message, report) => {
                if let Some(bar) = bar.take() {
                    bar.finish_and_clear();
                }
                notifications += 1;
                let ends = count.is_some_and(|count| notifications >= count);
                match show(message, report) {
                    Continuation::Go if !ends => Continuation::Go,
                    _ => Continuation::Stop,
                }
            }
        });
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        if let (Some(agreement), Err(_)) = (&mut self.agreement, &outcome.result) {
            // The server may have lost the context.
            agreement.end(&mut self.client);
        }
        Ok(outcome)
    }
}

/// Sends the request to a group, and prints all answers.
fn run_group(asked: &Ask<'_>, leisure: Duration) -> anyhow::Result<ExitCode> {
    if asked.observe.is_some() || asked.arguments.uri.scheme != Scheme::Coap {
        return Err(Usage::error("--group is for single requests over UDP (coap://)"));
    }
    if asked.arguments.options.output.is_some() {
        return Err(Usage::error("--group has several answers, which --output would write to one file"));
    }
    let request = request(asked)?;
    let signals = Signals::take()?;
    let uri = &asked.arguments.uri;
    let task = GroupTask { uri, request: &request, leisure, signals: Some(&signals) };
    let mut output = ResponseOutput::new(asked);
    let (mut failure, mut successes) = (None, 0_u64);
    let outcome = ask_group(&task, &mut |response, report| {
        successes += u64::from(response.is_success());
        output.show_member(response, report).unwrap_or_else(|error| {
            failure = Some(error);
            Continuation::Stop
        })
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let report = outcome.map_err(|error| anyhow::anyhow!("{error}{}", advice(&error, asked)))?;
    output.finish(&report);
    if output.shown == 0 {
        anyhow::bail!("no answer of the group within {leisure:?}. Wait longer with --group=TIME");
    }
    Ok(if successes > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the request of the arguments.
fn request<'a>(asked: &'a Ask<'_>) -> anyhow::Result<Request<'a>> {
    let options = &asked.arguments.options;
    match (asked.arguments.uri.scheme, &options.psk_file) {
        (Scheme::Coaps, None) => return Err(Usage::error("coaps:// needs a key: give --psk-file FILE")),
        // A request that looks protected would not be.
        (Scheme::Coap | Scheme::CoapTcp, Some(_)) => {
            return Err(Usage::error("--psk-file is for coaps://, over which the request is encrypted"));
        }
        (Scheme::Coaps, Some(_)) | (Scheme::Coap | Scheme::CoapTcp, None) => {}
    }
    let request = Request {
        method: asked.method,
        confirmable: options.is_confirmable(),
        options: options.options(&asked.arguments.uri, asked.content_format),
        payload: asked.payload.as_slice().into(),
        observe: asked.observe.is_some(),
    };
    if request.options.is_incomplete() {
        return Err(Usage::error(
            "invalid options: an option is longer than 65,804 octets, or there are too many",
        ));
    }
    Ok(request)
}

fn show_progress(
    bar: &mut Option<ProgressBar>,
    body: usize,
    sent: usize,
    received: usize,
    total: Option<usize>,
) {
    let bar = bar.get_or_insert_with(|| progress::bar(0, progress::OCTETS));
    let (length, position) = match received {
        0 => (body, sent),
        _ => (total.unwrap_or(received).max(received), received),
    };
    bar.set_length(length as u64);
    bar.set_position(position as u64);
}

/// Prints the code of an error response and its diagnostic payload (RFC 7252, section 5.5.2). Omits the code
/// if `--include` has printed it.
fn print_refusal(response: &Received<'_>, asked: &Ask<'_>) {
    let options = &asked.arguments.options;
    let diagnostic = names::printable(&String::from_utf8_lossy(&response.payload));
    let is_text = response.options.content_format().is_none_or(names::is_text);
    let diagnostic = Some(diagnostic.trim_end()).filter(|text| is_text && !text.is_empty());
    let code = Some(names::code(response.code)).filter(|_| !options.include || options.json);
    let of = if asked.in_series { format!("{}: ", asked.arguments.uri) } else { String::new() };
    match (code, diagnostic) {
        (Some(code), Some(diagnostic)) => eprintln!("thinair: {of}{code}: {diagnostic}"),
        (Some(code), None) => eprintln!("thinair: {of}{code}"),
        (None, Some(diagnostic)) => eprintln!("thinair: {of}the server answers: {diagnostic}"),
        (None, None) => {}
    }
}

/// Returns a suggestion for an error; may be empty.
fn advice(error: &ClientError, asked: &Ask<'_>) -> String {
    let attempts = match error {
        ClientError::Failed(attempts) => attempts,
        ClientError::TimeLimit { limit, .. } => {
            // The shorter of both has ended the wait.
            let is_of_observation = asked.observe.is_some_and(|(_, duration)| duration == Some(*limit));
            let option = if is_of_observation { "--for" } else { "--timeout" };
            return format!(". Raise the limit with {option}");
        }
        _ => return String::new(),
    };
    let Some(last) = attempts.last() else { return String::new() };
    let advice = match &last.why {
        AddressError::NoAnswer { .. } => {
            ". Is the server up, and does the path let UDP through? If either is silent for longer, \
             raise the limit, for example with --ack-timeout 10s"
        }
        AddressError::Group => ". Ask all of its members with --group",
        AddressError::NoGroup => ". Omit --group",
        AddressError::Refused { .. } if asked.arguments.uri.port == asked.arguments.uri.scheme.port() => {
            ". Is the server up, and does it accept CoAP over this transport on this port?"
        }
        AddressError::Refused { .. } => ". Is the server up, and is this its port?",
        AddressError::DatagramTooLarge { .. } | AddressError::Call(CallError::MessageTooLarge { .. }) => {
            ". Smaller blocks may go through: --block-size 256"
        }
        AddressError::Call(CallError::NoResponse) if asked.arguments.options.is_confirmable() => {
            ": the server acknowledged the request and did not answer it"
        }
        AddressError::Call(CallError::NoResponse) => {
            ". Non-confirmable messages are not retransmitted: omit --non"
        }
        AddressError::Dtls(Failure::NoAnswer { .. }) => {
            ". Is the server up, does it serve coaps on this port, and does the path let UDP through?"
        }
        AddressError::Dtls(_) => ". Compare --psk-file with the keys of the server",
        AddressError::Call(CallError::TooLarge { .. }) => ". Raise it with --max-body",
        AddressError::Call(CallError::Reset) => ". Does a CoAP server listen on this port?",
        _ => "",
    };
    advice.to_owned()
}

/// Runs `thinair coap discover`.
pub(in super::super) fn discover(arguments: &RequestArguments) -> anyhow::Result<ExitCode> {
    let mut arguments = arguments.clone();
    let uri = &mut arguments.uri;
    if uri.path.is_empty() {
        uri.path = vec![b".well-known".to_vec(), b"core".to_vec()];
    }
    let asked = Ask::new(Code::GET, &arguments);
    let options = &arguments.options;
    if options.json || options.output.is_some() || options.group.is_some() {
        return run_one(&asked);
    }
    let outcome = Series::open(&asked)?.exchange(&asked, &mut |_, _| Continuation::Go)?;
    match &outcome.result {
        Ok(Ending::Response(response)) if response.is_success() => {
            output::print_details(options, response, &outcome.report);
            discover::show(response)?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Ending::Response(response)) => {
            output::print_details(options, response, &outcome.report);
            print_refusal(response, &asked);
            Ok(ExitCode::FAILURE)
        }
        Ok(Ending::Stopped | Ending::Interrupted) => Ok(ExitCode::FAILURE),
        Err(error) => Err(anyhow::anyhow!("{error}{}", advice(error, &asked))),
    }
}
