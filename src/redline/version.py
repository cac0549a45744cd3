"""The version of this Redline, whose engine has the same."""

VERSION = "0.1.0"
