//! Transmission of a request on Linux, and output of its response.

use std::process::ExitCode;
use std::time::Duration;

use thinair_coap::uri::{PORT, Scheme};
use thinair_coap::{CallError, Code, Received, Request};
use thinair_os::Signals;
use thinair_services::coap::client::{
    AddressError, ClientError, ClientTask, Continuation, Ending, GroupTask, TaskOutcome, TaskProgress,
    TaskReport, ask, ask_group,
};

use super::super::output::{self, ResponseOutput};
use super::super::{discover, names};
use super::{Ask, RequestArguments};
use crate::progress::{self, ProgressBar};
use crate::usage::Usage;

pub(super) fn run_one(asked: &Ask<'_>) -> anyhow::Result<ExitCode> {
    if let Some(leisure) = asked.arguments.options.group {
        return run_group(asked, leisure);
    }
    let mut output = ResponseOutput::new(asked);
    let mut failure = None;
    let outcome = exchange(asked, &mut |message, report| {
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
            output.show(response, &outcome.report)?;
            output.finish(&outcome.report);
            if !response.is_success() {
                print_refusal(response, asked);
                return Ok(ExitCode::FAILURE);
            }
            if asked.observe.is_some() {
                eprintln!(
                    "thinair: {}",
                    match output.shown {
                        1 => "the server does not let this resource be observed: that was its only answer",
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
            Err(anyhow::anyhow!("{error}{}", advice(error, asked)))
        }
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

/// Sends the request and waits for the response, with a progress bar on terminals.
fn exchange(
    asked: &Ask<'_>,
    show: &mut dyn FnMut(&Received<'_>, &TaskReport) -> Continuation,
) -> anyhow::Result<TaskOutcome> {
    let (arguments, options) = (asked.arguments, &asked.arguments.options);
    let request = request(asked)?;
    let (count, observe_for) = asked.observe.unwrap_or_default();
    // From here on, waiting includes interruption signals.
    let signals = Signals::take()?;
    let task = ClientTask {
        config: options.config(),
        connect_timeout: options.connect_timeout,
        limit: options.timeout,
        observe_for,
        signals: Some(&signals),
        ..ClientTask::new(&arguments.uri, &request)
    };
    let mut bar = None;
    let mut notifications = 0;
    let outcome = ask(&task, &mut |event| match event {
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
    Ok(outcome)
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
    match (code, diagnostic) {
        (Some(code), Some(diagnostic)) => eprintln!("thinair: {code}: {diagnostic}"),
        (Some(code), None) => eprintln!("thinair: {code}"),
        (None, Some(diagnostic)) => eprintln!("thinair: the server answers: {diagnostic}"),
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
        AddressError::Refused { .. } if asked.arguments.uri.port == PORT => {
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
    let asked = Ask {
        method: Code::GET,
        arguments: &arguments,
        payload: Vec::new(),
        content_format: None,
        observe: None,
    };
    let options = &arguments.options;
    if options.json || options.output.is_some() || options.group.is_some() {
        return run_one(&asked);
    }
    let outcome = exchange(&asked, &mut |_, _| Continuation::Go)?;
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
