//! Placement, memory planning, plans and sessions of kovar.
