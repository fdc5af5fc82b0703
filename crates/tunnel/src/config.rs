//! Files and flags become a plan.
