# promise: a message is data, whatever it contains
# exercise: neighbours
# verdict: failed
# diagnosis: exception
# says: <script>alert(1)</script>
def neighbours():
    raise ValueError(
        "<script>alert(1)</script>\x1b]0;title\x07\x1b[2J=cmd|' /C calc'!A0\u202e\ud800"
    )
