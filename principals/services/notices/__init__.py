"""Notices: what is told to whom, written as rows, put into mails and sent."""
