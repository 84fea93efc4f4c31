"""Definitions: profiles of subagents from files and from code, read honestly and watched for changes."""
