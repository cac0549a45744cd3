//! Due times of a load, from a seed, in closed form.
