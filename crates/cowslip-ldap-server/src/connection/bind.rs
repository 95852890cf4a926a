//! Who a client is (RFC 4513).

use std::sync::Arc;

use cowslip_engine::Root;
use cowslip_ldap::message::{Authentication, BindRequest};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::AttributeTypeId;

use crate::model::Directory;
use crate::operations::{Refusal, prepare};
use crate::password;
use crate::server::Shared;
use crate::tree::Tree;

/// The longest password that is compared, in bytes.
const PASSWORD_BYTES_MAX: usize = 1024;

/// Who a client is.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    name: Option<Arc<str>>,
    is_root: bool,
}

impl Identity {
    /// Nobody.
    pub(super) const fn anonymous() -> Self {
        Self { name: None, is_root: false }
    }

    /// Whether it is nobody.
    pub(super) fn is_anonymous(&self) -> bool {
        self.name.is_none()
    }

    /// Whether it may do everything.
    pub(super) fn is_root(&self) -> bool {
        self.is_root
    }

    /// The name that entries it changes are given.
    pub(super) fn name(&self) -> Arc<str> {
        self.name.clone().unwrap_or_default()
    }

    /// The authorization identity (RFC 4532, RFC 4513 section 5.2.1.8): empty for nobody.
    pub(super) fn authorization(&self) -> String {
        self.name.as_ref().map(|name| format!("dn:{name}")).unwrap_or_default()
    }
}

/// Who proves to be who by a bind.
///
/// # Errors
/// `invalidCredentials` without a word more, whatever is wrong with name or password; other codes where the request
/// itself is not one that is done here.
pub(super) fn bind(
    root: &Root<Directory>,
    request: &BindRequest<'_>,
    shared: &Shared,
) -> Result<Identity, Refusal> {
    let Authentication::Simple(password) = request.authentication else {
        let message = "there are no SASL mechanisms yet";
        return Err(Refusal::new(ResultCode::AuthMethodNotSupported, message));
    };
    if request.name.is_empty() {
        return if password.is_empty() {
            Ok(Identity::anonymous())
        } else {
            let message = "a password without a name";
            Err(Refusal::new(ResultCode::InappropriateAuthentication, message))
        };
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(Refusal::new(ResultCode::InvalidCredentials, ""));
    }
    let dn = prepare::name(request.name)?;
    if password.is_empty() {
        // RFC 4513, section 5.1.2: whoever forgets to ask for the password must not take this for a login.
        let message = "a name without a password proves nothing";
        return Err(Refusal::new(ResultCode::UnwillingToPerform, message));
    }
    let refused = || Refusal::new(ResultCode::InvalidCredentials, "");
    let meta = root.meta();
    let normalized = |dn: &cowslip_ldap::dn::Dn| {
        let mut bytes = Vec::new();
        dn.normalize(&meta.schema, &mut bytes).ok().map(|()| bytes)
    };
    if normalized(&dn).is_some_and(|name| Some(name) == normalized(&shared.root_dn)) {
        let stored = shared.options.root_password.as_deref().unwrap_or_default();
        if password::is_match(stored, password) {
            return Ok(Identity { name: Some(shared.options.root_dn.as_str().into()), is_root: true });
        }
        return Err(refused());
    }
    let path = prepare::path(&dn, meta).map_err(|_| refused())?;
    let number = root.resolve(&path).map_err(|_| refused())?;
    let entry = root.entry(number).ok_or_else(refused)?;
    let mut stored =
        entry.attributes.of_type(AttributeTypeId::USER_PASSWORD).flat_map(|attribute| attribute.values());
    if stored.any(|stored| password::is_match(stored, password)) {
        return Ok(Identity { name: Some(root.dn(number).into()), is_root: false });
    }
    Err(refused())
}
