//! Sets of processors, as the kernel writes them: `0-3,8`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// More processors than any kernel counts, and than a mask of threads has room for.
const CPU_MAX: u16 = 1023;

/// What a set looks like.
pub(super) const CPUS_FORM: &str = "processors, such as \"2-3\" or \"0,4-7\"";

/// Some processors, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet(Vec<RangeInclusive<u16>>);

impl CpuSet {
    /// Their numbers, as they were named.
    pub fn numbers(&self) -> impl Iterator<Item = u16> {
        self.0.iter().flat_map(Clone::clone)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match (range.start(), range.end()) {
                (one, same) if one == same => write!(f, "{comma}{one}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for CpuSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |word: &str| match word.trim().parse::<u16>() {
            Ok(number) if number <= CPU_MAX => Ok(number),
            _ => Err(format!("`{}` is no processor's number, 0 to {CPU_MAX}", word.trim())),
        };
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (number(first)?, number(last)?) {
                (first, last) if first > last => Err(format!("{first} is above {last}")),
                (first, last) => Ok(first..=last),
            }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuSet;

    #[test]
    fn sets_are_read_as_the_kernel_writes_them() {
        for (text, numbers) in [("0", vec![0]), ("2-3", vec![2, 3]), ("0,4-6", vec![0, 4, 5, 6])] {
            let set: CpuSet = text.parse().unwrap();
            assert_eq!((set.numbers().collect::<Vec<_>>(), set.to_string().as_str()), (numbers, text));
        }
        for (text, why) in
            [("", "`` is no"), ("a", "`a` is no"), ("3-2", "3 is above 2"), ("1024", "0 to 1023"), ("1,", "`` is no")]
        {
            assert!(text.parse::<CpuSet>().unwrap_err().contains(why), "{text}");
        }
    }
}
