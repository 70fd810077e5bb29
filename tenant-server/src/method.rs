//! The calls of `minerva.v1.Participation`, and which of them each role has. A call that is not listed here nobody has.

use minerva_model::Role;

/// A call of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Describe,
    SetLevel,
    HoldLevel,
    HoldJob,
    HoldDebt,
    ReportDebt,
    SetSchedule,
    Credits,
    Boost,
    Coordinate,
    Begin,
    Finish,
    Cancel,
    Report,
}

impl Method {
    /// By its name in the contract.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "Describe" => Self::Describe,
            "SetLevel" => Self::SetLevel,
            "HoldLevel" => Self::HoldLevel,
            "HoldJob" => Self::HoldJob,
            "HoldDebt" => Self::HoldDebt,
            "ReportDebt" => Self::ReportDebt,
            "SetSchedule" => Self::SetSchedule,
            "Credits" => Self::Credits,
            "Boost" => Self::Boost,
            "Coordinate" => Self::Coordinate,
            "Begin" => Self::Begin,
            "Finish" => Self::Finish,
            "Cancel" => Self::Cancel,
            "Report" => Self::Report,
            _ => return None,
        })
    }

    /// Whether a role has it: a participant all, and of the others' lists every call stands in each, so that a new one compiles only once
    /// it is decided who has it.
    pub(crate) const fn is_permitted(self, role: Role) -> bool {
        match role {
            Role::Participant => true,
            Role::Guest => match self {
                Self::Describe
                | Self::SetLevel
                | Self::HoldLevel
                | Self::HoldJob
                | Self::HoldDebt
                | Self::ReportDebt
                | Self::SetSchedule
                | Self::Credits
                | Self::Coordinate
                | Self::Begin
                | Self::Finish
                | Self::Cancel
                | Self::Report => true,
                Self::Boost => false,
            },
            Role::Silent => match self {
                Self::Describe => true,
                Self::SetLevel
                | Self::HoldLevel
                | Self::HoldJob
                | Self::HoldDebt
                | Self::ReportDebt
                | Self::SetSchedule
                | Self::Credits
                | Self::Boost
                | Self::Coordinate
                | Self::Begin
                | Self::Finish
                | Self::Cancel
                | Self::Report => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Method;
    use minerva_contract::methods;
    use minerva_model::Role;

    #[test]
    fn of_all_calls_in_the_contract_each_role_has_those_listed_here() {
        let all = methods("Participation");
        let permitted = |role: Role| -> Vec<&str> {
            let has = |name: &&str| Method::of_name(name).is_some_and(|method| method.is_permitted(role));
            all.iter().map(String::as_str).filter(has).collect()
        };
        let everything = [
            "Describe",
            "SetLevel",
            "HoldLevel",
            "HoldJob",
            "HoldDebt",
            "ReportDebt",
            "SetSchedule",
            "Credits",
            "Boost",
            "Coordinate",
            "Begin",
            "Finish",
            "Cancel",
            "Report",
        ];
        assert_eq!(all, everything, "decide in `Method` who has a new call");
        assert_eq!(permitted(Role::Participant), everything);
        assert_eq!(permitted(Role::Guest), everything.into_iter().filter(|name| *name != "Boost").collect::<Vec<_>>());
        assert_eq!(permitted(Role::Silent), ["Describe"]);
        assert_eq!(Method::of_name("AddedLater"), None);
    }
}
