"""Recordings said in ten lines, and written as nsys exports of any schema: for the demo and the tests."""
