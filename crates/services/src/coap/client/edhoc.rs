//! Key exchange with a server before its first request.

use thinair_coap::oscore::ContextId;
use thinair_coap::{Code, Request, Uri, code};

use super::{Client, ClientError, ClientTask, Continuation, Ending, TaskReport};
use crate::coap::edhoc::{ExchangeError, Identity, Initiator, PATH, refusal_of, short_ids};

/// Reason why there is no security context with a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstablishError {
    /// The server did not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The key exchange has failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The server has another answer.
    #[error("the server answers {PATH} with {code}{}", if *.code == code::NOT_FOUND { ": it does not use EDHOC" } else { "" })]
    Response {
        /// Response Code.
        code: Code,
    },
    /// All connection identifiers of one octet are in use.
    #[error("48 security contexts are in use: remove one")]
    TooManyContexts,
}

impl Client {
    /// Agrees by EDHOC on a security context with the server of a task, whose request is not sent. Returns the name of the peer, too.
    /// The other end has the context when the first request in it was answered.
    ///
    /// # Errors
    /// The server does not answer, or is no peer of this identity.
    pub fn establish(
        &mut self,
        task: &ClientTask<'_>,
        identity: &Identity,
        report: &mut TaskReport,
    ) -> Result<(ContextId, String), EstablishError> {
        let random = getrandom::u32().map_err(|_| ClientError::NoRandomness)? as u8;
        let id = short_ids(random).find(|id| self.endpoint.context_with(&[*id]).is_none());
        let (initiator, message_1) = Initiator::new(id.ok_or(EstablishError::TooManyContexts)?);
        let path = PATH.trim_start_matches('/').split('/').map(|segment| segment.as_bytes().to_vec());
        let uri = Uri { path: path.collect(), query: Vec::new(), ..task.uri.clone() };
        let request = Request { options: uri.options(), ..Request::post("", message_1) };
        let task = ClientTask {
            uri: &uri,
            request: &request,
            context: None,
            observe_for: None,
            connect_timeout: task.connect_timeout,
            limit: task.limit,
            farewell: task.farewell,
            signals: task.signals,
        };
        let outcome = self.ask(&task, &mut |_| Continuation::Go);
        *report = outcome.report;
        let Ending::Response(response) = outcome.result? else {
            return Err(ClientError::Interrupted.into());
        };
        if response.code != Code::CHANGED {
            let refusal = refusal_of(&response.payload);
            return Err(refusal.map_or(EstablishError::Response { code: response.code }, Into::into));
        }
        let (context, peer) = initiator.complete(&response.payload, identity)?;
        let context = self.endpoint.add_context(context).map_err(ExchangeError::from)?;
        Ok((context, peer))
    }
}
